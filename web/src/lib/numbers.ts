// Sums and how numbers are printed. Every sum is in double precision, from the recorded numbers.

export const sum = (values: number[]): number => values.reduce((a, b) => a + b, 0);

export const mean = (values: number[]): number => (values.length ? sum(values) / values.length : 0);

export function variance(values: number[]): number {
  const middle = mean(values);
  return mean(values.map((x) => (x - middle) ** 2));
}

export const norm = (values: number[]): number => Math.sqrt(sum(values.map((x) => x * x)));

export const products = (a: number[], b: number[]): number[] => a.map((x, i) => x * b[i]);

/** In bits; 0 where all weight lies on one place. */
export function entropy(weights: number[]): number {
  return Math.abs(sum(weights.map((w) => (w > 0 ? -w * Math.log2(w) : 0))));
}

/** How many keys a query may read: those whose score is not −∞; of weights alone, those above 0. */
export const readable = (weights: number[], scores?: number[]): number =>
  scores ? scores.filter(Number.isFinite).length : weights.filter((w) => w > 0).length;

export function largest(values: number[]): number {
  return values.reduce((best, x, i) => (x > values[best] ? i : best), 0);
}

/** Ranks from 0, less their mean; equal numbers share theirs. */
function ranks(values: number[]): number[] {
  const middle = (values.length - 1) / 2;
  return values.map((x) => {
    const below = values.filter((y) => y < x).length;
    return below + (values.filter((y) => y === x).length - 1) / 2 - middle;
  });
}

/** Spearman's ρ; null where one side is all alike. */
export function ranked(a: number[], b: number[]): number | null {
  const [x, y] = [ranks(a), ranks(b)];
  const size = norm(x) * norm(y);
  return size ? sum(products(x, y)) / size : null;
}

/** Four digits that count. */
export function short(x: number | null): string {
  if (x === null || Number.isNaN(x)) return '—';
  if (!Number.isFinite(x)) return x < 0 ? '−∞' : '∞';
  if (Number.isInteger(x) && Math.abs(x) < 1e6) return String(x).replace('-', '−');
  const small = Math.abs(x) < 1e-3 || Math.abs(x) >= 1e6;
  return (small ? x.toExponential(2) : x.toPrecision(4)).replace('-', '−').replace('e-', 'e−');
}

/** All digits of a float32: the shortest text that reads back as the same number. */
export function exact(x: number | null): string {
  if (x === null || !Number.isFinite(x)) return short(x);
  if (Math.fround(x) !== x) return String(x).replace(/-/g, '−');
  for (let digits = 1; digits <= 9; digits++) {
    const text = x.toPrecision(digits);
    if (Math.fround(Number(text)) === x) return String(Number(text)).replace(/-/g, '−');
  }
  return String(x).replace(/-/g, '−');
}

/** A recorded number exactly; one computed here, in double precision, with ten digits that count. */
export function told(x: number | null): string {
  if (x === null || !Number.isFinite(x) || Math.fround(x) === x) return exact(x);
  return String(Number(x.toPrecision(10))).replace(/-/g, '−');
}

export const percent = (p: number): string =>
  p >= 0.9995 && p < 1 ? '> 99.9 %' : p > 0 && p < 0.0005 ? '< 0.1 %' : `${(100 * p).toFixed(1)} %`;

/** encoder.layers.0.self_attention → encoder, layer 0, self-attention: counted as in its address */
export function said(path: string): string {
  return path
    .replace(/\.layers\.(\d+)\./, ', layer $1, ')
    .replace('_attention', '-attention')
    .replace('feedforward', 'feed-forward')
    .replaceAll('.', ', ')
    .replaceAll('_', ' ');
}
