import { describe, expect, it } from 'vitest';
import { address, Journey, parseAddress, type Node, type PageData, unpack } from '../src/lib/document';
import { layout } from '../src/lib/tree';

const entry = { axes: ['query', 'key'], kind: 'pattern', computed_from: [], shape: [2, 3], dtype: 'F32' as const, at: 8 };

describe('a document', () => {
  it('finds numbers by their index, where they lie in the block', async () => {
    const block = new Float32Array([9, 9, 0, 1, 2, 3, 4, 5]);
    const stream = new Blob([block]).stream().pipeThrough(new CompressionStream('deflate'));
    const packed = new Uint8Array(await new Response(stream).arrayBuffer());
    const numbers = btoa(String.fromCharCode(...packed));
    const journey = await unpack({ numbers, records: { 'a.pattern': entry }, attentions: [] } as unknown as PageData);
    expect(journey.find('a.pattern')!.at(1, 2)).toBe(5);
    expect(journey.find('a.pattern')!.row(1)).toEqual([3, 4, 5]);
    expect(journey.find('b')).toBeNull();
  });
  it('knows which tokens stand along an attention', () => {
    const tokens = { source: ['s'], target: ['t'], written: ['w'] };
    const attentions = [{ path: 'decoder.layers.0.cross_attention', across: true }];
    const journey = new Journey({ tokens, attentions, records: {} } as unknown as PageData, new ArrayBuffer(0));
    expect(journey.sides('decoder.layers.0.cross_attention')).toEqual({ queries: ['t'], keys: ['s'] });
    expect(journey.sides('decoder.layers.0.self_attention')).toEqual({ queries: ['t'], keys: ['t'] });
    expect(journey.sides('encoder.layers.0.self_attention')).toEqual({ queries: ['s'], keys: ['s'] });
  });
  it('reads back the addresses it writes, and nothing else', () => {
    expect(parseAddress(address('a.b', 1, 2))).toEqual({ name: 'a.b', index: [1, 2] });
    expect(parseAddress('<img>')).toBeNull();
  });
});

describe('the tree', () => {
  const node = (parent: number, length: number, fate: Node['fate'], log_probability: number): Node =>
    ({ parent, fate, length, log_probability, token: 0, text: 'x', rank: 0, needed: null });
  const nodes = [node(-1, 1, 'pruned', -1), node(-1, 1, 'kept', -2), node(1, 2, 'pruned', -4), node(1, 2, 'finished', -5), node(1, 2, 'kept', -3)];
  it('has a column per step: what went on above what was pruned, the likelier the higher', () => {
    const { columns, rows, placed } = layout(nodes, () => true);
    expect(columns).toEqual([{ nodes: [1, 0], kept: 1 }, { nodes: [4, 3, 2], kept: 2 }]);
    expect(rows).toBe(3);
    expect(placed.map((n) => n.row)).toEqual([1, 0, 2, 1, 0]);
    expect(placed[1].children).toEqual([2, 3, 4]);
  });
  it('leaves out what is not shown', () => {
    const { columns, rows } = layout(nodes, (i) => nodes[i].fate !== 'pruned');
    expect([columns.map((c) => c.nodes), rows]).toEqual([[[1], [4, 3]], 2]);
  });
  it('is empty for a search that looked at nothing', () => expect(layout([], () => true)).toEqual({ placed: [], columns: [], rows: 0 }));
});
