import { describe, expect, it } from 'vitest';
import { Journey, type PageData, type RecordEntry } from '../src/lib/document';
import { opened, placed } from '../src/lib/opened';
import { ranked } from '../src/lib/numbers';

const ATTENTION = 'encoder.layers.0.self_attention';
const RESIDUAL = 'encoder.layers.0.attention_residual';

/** A page of these records, in double precision. */
function page(records: Record<string, { shape: number[]; numbers: number[]; axes?: string[]; from?: string[] }>, more: object = {}): Journey {
  const block: number[] = [];
  const entries: Record<string, RecordEntry> = {};
  for (const [name, given] of Object.entries(records)) {
    if (!given) continue;
    const { shape, numbers, axes = [], from = [] } = given;
    entries[name] = { axes, kind: 'vector', computed_from: from, shape, dtype: 'F64', at: 8 * block.length };
    block.push(...numbers);
  }
  const data = { records: entries, tokens: { source: ['a', 'b'], target: ['t'], written: ['w'] }, attentions: [{ path: ATTENTION, across: false }], facts: {}, ...more };
  return new Journey(data as unknown as PageData, new Float64Array(block).buffer);
}

const attention = page({
  [`${ATTENTION}.query`]: { shape: [2, 2, 2], numbers: [1, 2, 3, 4, 5, 6, 7, 8], axes: ['head', 'position', 'channel'], from: [`${RESIDUAL}.norm.out`] },
  [`${ATTENTION}.key`]: { shape: [1, 2, 2], numbers: [1, -1, 0.5, 2] },
  [`${ATTENTION}.value`]: { shape: [1, 2, 2], numbers: [10, 20, 30, 40] },
  [`${ATTENTION}.scale`]: { shape: [], numbers: [0.5] },
  [`${ATTENTION}.scores`]: { shape: [2, 2, 2], numbers: [-0.5, 2.25, -0.5, -Infinity, -0.5, 7.25, -0.5, 9.75], axes: ['head', 'query', 'key'] },
  [`${ATTENTION}.pattern`]: { shape: [2, 2, 2], numbers: [0.25, 0.75, 1, 0, 0.5, 0.5, 0, 1] },
  [`${ATTENTION}.mixed`]: { shape: [2, 2, 2], numbers: [25, 35, 10, 20, 20, 30, 30, 40] },
  [`${RESIDUAL}.norm.in`]: { shape: [1, 2], numbers: [1, 3] },
  [`${RESIDUAL}.norm.out`]: { shape: [1, 2], numbers: [-1, 5], axes: ['position', 'channel'] },
  [`${RESIDUAL}.norm.weight`]: { shape: [2], numbers: [1, 2] },
  [`${RESIDUAL}.norm.bias`]: { shape: [2], numbers: [0, 3] },
  [`${RESIDUAL}.norm.eps`]: { shape: [], numbers: [0] },
  [`${RESIDUAL}.norm.centred`]: { shape: [], numbers: [1] },
});
const at = (address: string) => opened(attention, address)!;

describe('a number taken apart', () => {
  it('is a score: channels times channels, scaled; heads may share keys', () => {
    const { value, total, terms, python } = at(`${ATTENTION}.scores[1,0,1]`);
    expect([value, total]).toEqual([7.25, 7.25]);
    expect(terms!.map((term) => term.value)).toEqual([2.5, 12]);
    expect(terms![1].of).toEqual([['query', `${ATTENTION}.query[1,0,1]`], ['× key', `${ATTENTION}.key[0,1,1]`]]);
    expect(python).toBe(`trace["${ATTENTION}.scores[1,0,1]"]`);
  });
  it('is locked where it may not be read', () => expect(at(`${ATTENTION}.scores[0,1,1]`)).toMatchObject({ value: -Infinity, total: -Infinity }));
  it('is a weight: the softmax of its row', () => {
    expect(at(`${ATTENTION}.pattern[0,0,1]`).total).toBeCloseTo(Math.exp(2.25) / (Math.exp(2.25) + Math.exp(-0.5)), 12);
    expect(at(`${ATTENTION}.pattern[0,1,0]`).total).toBe(1);
  });
  it('is a mix of values', () => expect(at(`${ATTENTION}.mixed[0,0,1]`)).toMatchObject({ value: 35, total: 35 }));
  it('is a normalised number', () => expect(at(`${RESIDUAL}.norm.out[0,1]`)).toMatchObject({ value: 5, total: 5 }));
  it('is the mean of heads', () => expect(at(`${ATTENTION}.pattern.mean[0,0]`)).toMatchObject({ value: 0.375, total: 0.375 }));
  it('names the vector it came from, where a matrix made it', () => {
    const { total, from } = at(`${ATTENTION}.query[0,0,1]`);
    expect([total, from]).toEqual([undefined, [`${RESIDUAL}.norm.out[0]`]]);
    expect(at(`${RESIDUAL}.norm.out[0]`).vector).toEqual([-1, 5]);
  });
  it('says in words where it stands', () => expect(placed(attention, `${ATTENTION}.scores[0,1,0]`)).toEqual(['head 0', 'query 1 (b)', 'key 0 (a)']));
  it('is not there outside', () => {
    for (const address of [`${ATTENTION}.scores[0,0,2]`, `${ATTENTION}.scores`, 'nothing[0]', '<img>', `${ATTENTION}.scores[0,0,0,0]`]) expect(opened(attention, address)).toBeNull();
  });
});

describe('a logit taken apart', () => {
  const parts = ['target_embedding.tokens', 'decoder.layers.0.cross_attention.heads[1]', 'decoder.norm.bias', 'written_bias'];
  const words = [{ text: 'w', id: 7, probability: 0.9, logit: 2 }, { text: 'v', id: 4, probability: 0.1, logit: -1 }];
  const more = { choices: [{ likeliest: words, rest: 0, others: 0 }], direct: { labels: [parts, ['w'], null] } };
  const records = {
    direct: { shape: [4, 1, 2], numbers: [1, 0.5, 2, -2, -0.5, 0, -0.5, 0.5], axes: ['part', 'position', 'word'] },
    written_ids: { shape: [1], numbers: [7] }, hidden: { shape: [1, 2], numbers: [1, 2] }, written_rows: { shape: [1, 2], numbers: [0, 1] },
  };
  const journey = page(records, more);
  it('is what the parts put in, for the word written and for any other that is listed', () => {
    expect(opened(journey, 'logits[0,7]')).toMatchObject({ value: 2, total: 2, from: ['logits.by_channel[0,7]'] });
    const other = opened(journey, 'logits[0,4]')!;
    expect([other.value, other.total, other.terms!.length, other.from]).toEqual([-1, -1, 4, undefined]);
    expect(other.terms![1]).toEqual({ what: 'layer 0, cross-attention, head 1', value: -2, of: [['', 'direct[1,0,1]']] });
  });
  it('opens channel by channel where the page has the word’s row', () => {
    expect(opened(journey, 'logits.by_channel[0,7]')).toMatchObject({ value: 2, total: 2 });
    expect(opened(journey, 'logits.by_channel[0,4]')).toBeNull();
  });
  it('has contributions with addresses, and the vector each came from', () => {
    expect(opened(journey, 'direct[1,0,1]')).toMatchObject({ value: -2, python: 'explain(model, text).direct.values[1, 0, 1]', from: ['decoder.layers.0.cross_attention.heads[1,0]'] });
    expect(opened(journey, 'direct[2,0,0]')!.from).toEqual(['decoder.norm.bias']);
    expect(placed(journey, 'direct[1,0,1]')).toEqual(['part 1 (layer 0, cross-attention, head 1)', 'position 0 (w)', 'word 1 (v)']);
    expect([opened(journey, 'direct[4,0,0]'), opened(journey, 'direct[0,0]')]).toEqual([null, null]);
  });
  it('opens by channel alone where there are no parts', () => {
    expect(opened(page({ ...records, direct: undefined! }, { ...more, direct: null }), 'logits[0,7]')).toMatchObject({ total: 2, terms: [{ value: 0 }, { value: 2 }] });
  });
});

describe('a lens taken apart', () => {
  const left_out = { values: [[2, -1]], prefix: [[1, null]] };
  const journey = page(
    { written_log_probabilities: { shape: [1], numbers: [-0.5] }, [`${ATTENTION}.pattern`]: { shape: [1, 1, 2], numbers: [0.9, 0.1] } },
    { lenses: { left_out, share: { values: [0.75] }, agreement: { values: [[1]], labels: [[ATTENTION], null], overall: 1 } } },
  );
  it('is a share of sizes', () => expect(opened(journey, 'share[0]')).toMatchObject({ value: 0.75, total: 0.75 }));
  it('is a difference of log-probabilities', () => expect(opened(journey, 'left_out[0,1]')!.parts!.map((part) => part.value)).toEqual([-0.5, 0.5]));
  it('is an agreement of rankings', () => {
    expect(opened(journey, 'agreement[0,0]')!.total).toBeCloseTo(1, 12);
    expect(opened(journey, 'agreement.overall')!.total).toBeCloseTo(1, 12);
    expect(ranked([1, 2, 2, 3], [4, 3, 2, 1])).toBeCloseTo(-0.9486832980505138, 12);
    expect(ranked([1, 1], [1, 2])).toBeNull();
  });
  it('has no number outside', () => expect([opened(journey, 'left_out[0,5]'), opened(journey, 'share[3]')]).toEqual([null, null]));
});
