// The document of a page: what Python wrote (explore/document.py), with its numbers unpacked.
// Knows records, places and addresses. Refuses to know pictures.

export interface RecordEntry {
  axes: string[];
  kind: string;
  computed_from: string[];
  shape: number[];
  dtype: 'F32' | 'F64' | 'I64';
  at: number;
}

export interface Candidate {
  text: string;
  id: number;
  probability: number;
  logit: number;
}

export interface Choice {
  likeliest: Candidate[];
  rest: number;
  others: number;
}

/** A place where another word was likelier than the one written. */
export interface Likelier {
  position: number;
  written: string;
  written_id: number;
  probability: number;
  likeliest: string;
  likeliest_id: number;
  likeliest_probability: number;
}

export interface Node {
  parent: number;
  token: number;
  text: string;
  length: number;
  log_probability: number;
  rank: number;
  fate: 'kept' | 'pruned' | 'finished' | 'unfinished';
  needed: number | null;
}

export interface Lens<Values> {
  method: string;
  axes: string[];
  labels: (string[] | null)[];
  values: Values;
  caveat: string;
  cost: { seconds: number; passes: number; backward: number };
  control: { what: string; value: number | null };
}

type Row = (number | null)[];

export interface PageData {
  format: string;
  text: string;
  translation: string;
  facts: Record<string, string | number>;
  provenance: {
    network: string;
    dtype: string;
    output: string;
    ended: boolean;
    edits: string[];
    parity: { largest_difference: number; not_likeliest: number[] } | null;
  };
  log_probability: number;
  tokens: { source: string[]; target: string[]; written: string[] };
  attentions: { path: string; across: boolean }[];
  choices: Choice[];
  /** What each part put into the logits of the words listed: their numbers are the record `direct`; null: a decoder without a stream. */
  direct: (Omit<Lens<never>, 'values'> & { gap: number }) | null;
  likelier: Likelier[];
  neighbours: { text: string; cosine: number }[][];
  search: { beam: number; length_penalty: number; nodes: Node[]; path: number[]; same: boolean };
  lenses: {
    left_out: Lens<Row[]> & { prefix: Row[] };
    share: Lens<Row>;
    agreement: Lens<Row[]> & { overall: number | null };
  };
  records: Record<string, RecordEntry>;
  absent: string[];
  numbers: string;
}

export type Numbers = Float32Array | Float64Array | BigInt64Array;

/** One record: its numbers as recorded, found by index. */
export class Tensor {
  constructor(
    readonly name: string,
    readonly entry: RecordEntry,
    readonly numbers: Numbers,
  ) {}

  get shape(): number[] {
    return this.entry.shape;
  }

  at(...index: number[]): number {
    let place = 0;
    this.shape.forEach((size, axis) => (place = place * size + index[axis]));
    return Number(this.numbers[place]);
  }

  /** The numbers along the last axis. */
  row(...index: number[]): number[] {
    const wide = this.shape[this.shape.length - 1];
    return Array.from({ length: wide }, (_, i) => this.at(...index, i));
  }
}

export class Journey {
  constructor(
    readonly data: PageData,
    private readonly block: ArrayBuffer,
  ) {}

  has(name: string): boolean {
    return name in this.data.records;
  }

  /** The record, or null where this page had no room for it. */
  find(name: string): Tensor | null {
    const entry = this.data.records[name];
    if (!entry) return null;
    const count = entry.shape.reduce((a, b) => a * b, 1);
    const kinds = { F32: Float32Array, F64: Float64Array, I64: BigInt64Array };
    return new Tensor(name, entry, new kinds[entry.dtype](this.block, entry.at, count));
  }

  scalar(name: string): number | null {
    return this.find(name)?.at() ?? null;
  }

  /** Attentions of which this page holds this part. */
  attentionsWith(part: string): string[] {
    return this.data.attentions.map((a) => a.path).filter((path) => this.has(`${path}.${part}`));
  }

  isAcross(path: string): boolean {
    return this.data.attentions.some((a) => a.path === path && a.across);
  }

  /** What stands along the queries and the keys of an attention. */
  sides(path: string): { queries: string[]; keys: string[] } {
    const { source, target } = this.data.tokens;
    const queries = path.startsWith('encoder') ? source : target;
    return { queries, keys: this.isAcross(path) ? source : queries };
  }
}

export async function unpack(data: PageData): Promise<Journey> {
  const packed = Uint8Array.from(atob(data.numbers), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Journey(data, await new Response(stream).arrayBuffer());
}

export function address(name: string, ...index: number[]): string {
  return index.length ? `${name}[${index.join(',')}]` : name;
}

/** name[1,2,3] → its parts, or null. */
export function parseAddress(text: string): { name: string; index: number[] } | null {
  const match = /^([\w.]+)(?:\[(\d+(?:,\d+)*)\])?$/.exec(text);
  return match && { name: match[1], index: match[2] ? match[2].split(',').map(Number) : [] };
}
