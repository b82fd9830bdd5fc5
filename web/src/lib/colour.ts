// Two scales, each in a light and a dark form: weights from 0 to 1, and signed numbers around zero.
// Scales are fixed or printed; no map is stretched by itself.

type Rgb = [number, number, number];

export interface Scale {
  low: number;
  high: number;
}

const SEQUENTIAL: Record<'light' | 'dark', Rgb[]> = {
  light: [[246, 247, 249], [168, 203, 226], [74, 137, 190], [20, 78, 140], [8, 34, 80]],
  dark: [[28, 32, 40], [50, 70, 112], [92, 116, 146], [178, 164, 110], [255, 226, 120]],
};
const NEGATIVE: Record<'light' | 'dark', Rgb[]> = {
  light: [[250, 250, 250], [150, 185, 225], [33, 91, 168]],
  dark: [[30, 33, 40], [44, 92, 150], [120, 190, 255]],
};
const POSITIVE: Record<'light' | 'dark', Rgb[]> = {
  light: [[250, 250, 250], [244, 179, 120], [190, 78, 6]],
  dark: [[30, 33, 40], [156, 84, 30], [255, 176, 98]],
};

export const UNIT: Scale = { low: 0, high: 1 };

/** Around zero, up to the largest size. */
export function around(values: Iterable<number>): Scale {
  let size = 0;
  for (const x of values) if (Number.isFinite(x)) size = Math.max(size, Math.abs(x));
  return { low: -(size || 1), high: size || 1 };
}

function between(stops: Rgb[], t: number): string {
  const place = Math.min(Math.max(t, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(place), stops.length - 2);
  const part = stops[i].map((a, c) => Math.round(a + (stops[i + 1][c] - a) * (place - i)));
  return `rgb(${part.join(',')})`;
}

export function colour(x: number, scale: Scale, dark: boolean): string {
  const mode = dark ? 'dark' : 'light';
  if (scale.low >= 0) return between(SEQUENTIAL[mode], (x - scale.low) / (scale.high - scale.low));
  return x < 0 ? between(NEGATIVE[mode], x / scale.low) : between(POSITIVE[mode], x / scale.high);
}
