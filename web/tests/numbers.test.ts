import { describe, expect, it } from 'vitest';
import { entropy, exact, percent, readable, said, short, told, variance } from '../src/lib/numbers';
import { cellSize } from '../src/lib/size';

describe('numbers as they are printed', () => {
  it('gives every digit a float32 needs, and no more', () => {
    for (const x of [0.1, 1 / 3, 123456.789, 1e-20, -7.25]) {
      const single = Math.fround(x);
      expect(Math.fround(Number(exact(single).replace('−', '-')))).toBe(single);
      expect(exact(single).length).toBeLessThanOrEqual(15);
    }
    expect(exact(Math.fround(0.1))).toBe('0.1');
  });
  it('gives ten digits of what was computed here', () => {
    expect(told(1 / 3)).toBe('0.3333333333');
    expect(told(Math.fround(0.1))).toBe('0.1');
  });
  it('says what is locked and what is missing', () => {
    expect(short(-Infinity)).toBe('−∞');
    expect(short(null)).toBe('—');
    expect(percent(1)).toBe('100.0 %');
    expect(percent(0.99999)).toBe('> 99.9 %');
  });
  it('counts layers as their addresses do', () => {
    expect(said('decoder.layers.1.cross_attention')).toBe('decoder, layer 1, cross-attention');
  });
  it('makes cells that fit, and under a finger never tiny ones', () => {
    expect([cellSize(5, 660, 28, false), cellSize(48, 660, 28, false), cellSize(200, 660, 28, false)]).toEqual([28, 13, 10]);
    expect(cellSize(48, 660, 28, true)).toBe(22);
  });
  it('knows how many keys may be read', () => {
    expect(readable([0.5, 0.5, 0], [1, 1, -Infinity])).toBe(2);
    expect(readable([1, 0, 0], [200, 1, -Infinity])).toBe(2);
    expect(readable([0.5, 0.5, 0])).toBe(2);
  });
  it('knows the entropy of even reading', () => {
    expect(entropy([0.25, 0.25, 0.25, 0.25])).toBe(2);
    expect(entropy([1, 0])).toBe(0);
    expect(variance([1, 3])).toBe(1);
  });
});
