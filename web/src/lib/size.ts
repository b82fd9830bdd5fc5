// How large the cells of a grid are: as many as there are have to fit; under a finger they are never tiny.

const coarse = typeof matchMedia === 'function' && matchMedia('(pointer: coarse)').matches;

/** Pixels a cell, of `count` cells side by side in `room` pixels. */
export function cellSize(count: number, room: number, most: number, finger = coarse): number {
  return Math.max(finger ? 22 : 10, Math.min(most, Math.floor(room / Math.max(1, count))));
}
