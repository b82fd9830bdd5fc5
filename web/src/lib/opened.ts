// One number taken apart: what it was computed from, and the same computed again here, in double precision, from the
// records of the page. The page's twin of glass/opened.py, for the lenses and the search as well.
// Knows records, lenses and addresses. Refuses to know pictures.
import { address, parseAddress, type Journey } from './document';
import { products, ranked, sum } from './numbers';
import { partSaid, partsOf, vectorOf } from './parts';

export interface Term {
  what: string;
  /** Is `what` a token? */
  token?: boolean;
  value: number | null;
  /** Where its factors stand: a word for each, and its address. */
  of?: [word: string, address: string][];
}

interface Made {
  how: string;
  terms?: Term[];
  /** Other numbers of the formula. */
  parts?: Term[];
  /** Recomputed from terms and parts; absent where the page does not hold all of them. */
  total?: number | null;
  /** Vectors that came in, where a matrix of the model made the number. */
  from?: string[];
}

export interface Opened extends Made {
  address: string;
  /** As recorded; null where the address names a whole vector. */
  value: number | null;
  vector: number[] | null;
  python: string;
}

type Opener = (journey: Journey, name: string, index: number[]) => Made | null;

/** The number, or the vector, at this address; null where the page has none. */
export function opened(journey: Journey, text: string): Opened | null {
  const asked = parseAddress(text);
  if (!asked) return null;
  const { name, index } = asked;
  const measured = MEASURED[name];
  if (measured) {
    const value = measured.at(journey, index);
    return value === undefined ? null : { address: text, value, vector: null, python: measured.python(index), ...measured.open(journey, name, index)! };
  }
  if (name.endsWith('.pattern.mean')) return meanOfHeads(journey, text, name.slice(0, -5), index);
  return recorded(journey, text, name, index);
}

function recorded(journey: Journey, text: string, name: string, index: number[]): Opened | null {
  const tensor = journey.find(name);
  if (!tensor || index.some((i, axis) => i >= tensor.shape[axis])) return null;
  const python = `trace["${text}"]`;
  const missing = tensor.shape.length - index.length;
  if (missing === 1) return { address: text, value: null, vector: tensor.row(...index), python, how: 'a whole vector: choose one of its numbers' };
  if (missing) return null;
  const opener = OPENERS.find(([pattern]) => pattern.test(name))?.[1];
  const made = opener ? (opener(journey, name, index) ?? { how: 'computed from', from: tensor.entry.computed_from }) : byWeights(journey, name, index);
  return { address: text, value: tensor.at(...index), vector: null, python, ...made };
}

/** In words: which head, between which tokens. */
export function placed(journey: Journey, text: string): string[] {
  const asked = parseAddress(text);
  const record = asked && journey.data.records[asked.name];
  if (!record) return [];
  const { name, index } = asked;
  const { source, target, written } = journey.data.tokens;
  const path = stem(name);
  const { queries, keys } = journey.sides(path);
  const memory = /\.(key|value)$/.test(name) && journey.isAcross(path);
  const own = name.startsWith('written') || name === 'direct' ? written : name.startsWith('target') ? target : /^(source|memory)/.test(name) || memory ? source : queries;
  const parts = (journey.data.direct?.labels[0] ?? []).map(partSaid);
  const words = journey.data.choices?.[index[1]]?.likeliest.map((word) => word.text) ?? [];
  const tokens: Record<string, string[]> = { query: queries, key: keys, position: own, part: parts, word: words };
  return record.axes.slice(0, index.length).map((axis, i) => `${axis} ${index[i]}${tokens[axis] ? ` (${tokens[axis][index[i]]})` : ''}`);
}

const stem = (name: string): string => name.slice(0, name.lastIndexOf('.'));

/** Which head of keys and values this head of queries reads. */
function shared(journey: Journey, path: string, head: number, part: string): number {
  const [all, held] = [journey.find(`${path}.pattern`)!.shape[0], journey.find(`${path}.${part}`)!.shape[0]];
  return Math.floor(head / (all / held));
}

function term(journey: Journey, name: string, ...index: number[]): Term {
  const short = name.replace(/^.+\.(?=norm\.)|^.+\.(?!.*norm\.)/, '');
  return { what: '', value: journey.find(name)?.at(...index) ?? null, of: [[short, address(name, ...index)]] };
}

function added(how: string, terms: Term[]): Made {
  return { how, terms, total: terms.some((t) => t.value === null) ? undefined : sum(terms.map((t) => t.value!)) };
}

const score: Opener = (journey, name, [h, q, k]) => {
  const path = stem(name);
  const [query, key] = [journey.find(`${path}.query`), journey.find(`${path}.key`)];
  if (!query || !key) return null;
  const held = shared(journey, path, h, 'key');
  const terms = products(query.row(h, q), key.row(held, k)).map((value, c) => ({
    what: `channel ${c}:`,
    value,
    of: [['query', address(query.name, h, q, c)], ['× key', address(key.name, held, k, c)]] as [string, string][],
  }));
  const scale = journey.scalar(`${path}.scale`) ?? 1;
  const bias = journey.find(`${path}.bias`)?.at(h, q, k) ?? 0;
  const locked = journey.find(name)!.at(h, q, k) === -Infinity;
  const parts: Term[] = [{ what: 'sum of the products', value: sum(terms.map((t) => t.value)) }, { what: 'scale', value: scale, of: [['', `${path}.scale`]] }];
  if (bias) parts.push({ what: 'bias', value: bias, of: [['', address(`${path}.bias`, h, q, k)]] });
  const how = 'scale · sum over channels of query × key, plus bias';
  return { how: locked ? `${how}; then locked: this query may not read this key` : how, terms, parts, total: locked ? -Infinity : scale * parts[0].value! + bias };
};

const pattern: Opener = (journey, name, [h, q, k]) => {
  const path = stem(name);
  const scores = journey.find(`${path}.scores`);
  if (!scores) return null;
  const row = scores.row(h, q);
  const most = Math.max(...row);
  const powers = row.map((x) => (most > -Infinity ? Math.exp(x - most) : 0));
  const whole = sum(powers);
  const keys = journey.sides(path).keys;
  const terms = powers.map((value, i) => ({ what: keys[i], token: true, value, of: [['score', address(scores.name, h, q, i)]] as [string, string][] }));
  const parts = [{ what: 'sum of the row', value: whole }, { what: 'largest score of the row', value: most }];
  return { how: 'e to the power of (score − the row’s largest), divided by the sum of the row', terms, parts, total: whole ? powers[k] / whole : 0 };
};

const mixed: Opener = (journey, name, [h, q, c]) => {
  const path = stem(name);
  const [weights, values] = [journey.find(`${path}.pattern`), journey.find(`${path}.value`)];
  if (!weights || !values) return null;
  const held = shared(journey, path, h, 'value');
  const terms = journey.sides(path).keys.map((what, k) => ({
    what,
    token: true,
    value: weights.at(h, q, k) * values.at(held, k, c),
    of: [['weight', address(weights.name, h, q, k)], ['× value', address(values.name, held, k, c)]] as [string, string][],
  }));
  return added('sum over keys of weight × value', terms);
};

const out: Opener = (journey, name, [p, c]) => {
  const path = stem(name);
  const heads = journey.find(`${path}.heads`);
  if (!heads) return null;
  const terms = Array.from({ length: heads.shape[0] }, (_, h) => ({ ...term(journey, heads.name, h, p, c), what: `head ${h}:` }));
  const bias = journey.has(`${path}.out_bias`) ? [term(journey, `${path}.out_bias`, c)] : [];
  return added('what every head brought, added up', [...terms, ...bias]);
};

/** What is added at this very place; one term where it is only handed on. */
const handedOn: Opener = (journey, name, index) => {
  const terms = journey.data.records[name].computed_from.map((part) => term(journey, part, ...index));
  return terms.length ? added(terms.length > 1 ? 'the sum of what comes in' : 'handed on as it is', terms) : null;
};

const normed: Opener = (journey, name, [p, c]) => {
  const path = stem(name);
  const [x, eps] = [journey.find(`${path}.in`), journey.scalar(`${path}.eps`)];
  if (!x || eps === null || !journey.has(`${path}.weight`)) return null;
  const row = x.row(p);
  const running = journey.find(`${path}.running_mean`);
  if (!running && journey.data.facts.norm === 'batch') return null;
  const middle = running ? running.at(c) : (journey.scalar(`${path}.centred`) ?? 1) * (sum(row) / row.length);
  const spread = running ? journey.find(`${path}.running_variance`)!.at(c) : sum(row.map((v) => (v - middle) ** 2)) / row.length;
  const [gamma, beta] = [journey.find(`${path}.weight`)!.at(c), journey.find(`${path}.bias`)?.at(c) ?? 0];
  const parts: Term[] = [
    { what: 'x', value: row[c], of: [['', address(x.name, p, c)]] },
    { what: 'mean μ', value: middle },
    { what: 'variance σ²', value: spread },
    { what: 'ε', value: eps },
    { what: 'factor γ', value: gamma, of: [['', address(`${path}.weight`, c)]] },
    { what: 'shift β', value: beta, of: journey.has(`${path}.bias`) ? [['', address(`${path}.bias`, c)]] : [] },
  ];
  return { how: '(x − μ) / √(σ² + ε) · γ + β', parts, total: ((row[c] - middle) / Math.sqrt(spread + eps)) * gamma + beta };
};

const logProbability: Opener = (journey, _, [t]) => {
  const id = journey.find('written_ids')?.at(t);
  const word = journey.data.choices[t].likeliest.find((one) => one.id === id);
  return word ? { how: 'natural logarithm of the probability', parts: [{ what: word.text, value: word.probability, of: [['', address('probabilities', t, word.id)]] }], total: Math.log(word.probability) } : null;
};

/** Records that a matrix of the model made: what came in, as vectors. */
function byWeights(journey: Journey, name: string, index: number[]): Made {
  const made = journey.data.records[name].computed_from;
  if (/_ids$/.test(name)) return { how: 'the number of a piece in the list: where its row stands in the embedding table' };
  if (/_embedding\.tokens$/.test(name)) {
    const ids = made[0] ?? '';
    return { how: 'one number of the piece’s row in the embedding table, as it enters the model', parts: [{ ...term(journey, ids, index[0]), what: 'row' }] };
  }
  const kind = journey.data.records[name].kind;
  if (!made.length) return { how: kind === 'weight' ? 'learned in training; the same for every sentence' : kind === 'constant' ? 'a constant of the model; the same for every sentence' : 'it follows from the place alone; the same for every sentence' };
  if (kind === 'weight') return { how: 'the row that the model’s output table has for the piece written', from: made.map((part) => address(part, index[0])) };
  const place = journey.data.records[name].axes.indexOf('position');
  const from = made.map((part) => (place >= 0 && journey.data.records[part]?.axes.at(-2) === 'position' && journey.data.records[part].axes.length === 2 ? address(part, index[place]) : part));
  if (name.endsWith('.heads')) from.splice(0, 1, address(made[0], index[0], index[1]));
  const turned = journey.data.facts.positions === 'rotary' && /\.self_attention\.(query|key)$/.test(name) ? ' (and turned by the angle of its place)' : '';
  return { how: `made by learned matrices of the model${turned}, which are in its folder and not in this page, from`, from };
}

const OPENERS: [RegExp, Opener][] = [
  [/\.scores$/, score],
  [/\.pattern$/, pattern],
  [/\.mixed$/, mixed],
  [/_attention\.out$|^decoder\.attention\.out$/, out],
  [/norm\.out$/, normed],
  [/_embedding\.sum$|residual\.(before|added|after)$|norm\.in$|^memory$|^hidden$/, handedOn],
  [/^written_log_probabilities$/, logProbability],
];

function meanOfHeads(journey: Journey, text: string, name: string, index: number[]): Opened | null {
  const tensor = journey.find(name);
  if (!tensor || index.length !== 2 || index.some((i, axis) => i >= tensor.shape[axis + 1])) return null;
  const heads = tensor.shape[0];
  const terms = Array.from({ length: heads }, (_, h) => ({ ...term(journey, name, h, ...index), what: `head ${h}:` }));
  const total = sum(terms.map((t) => t.value!)) / heads;
  return { address: text, value: total, vector: null, python: `trace["${name}"].mean(0)[${index.join(', ')}]`, how: `sum over heads, divided by ${heads}`, terms, total };
}

interface Measured {
  /** undefined: there is none at this place. */
  at: (journey: Journey, index: number[]) => number | null | undefined;
  python: (index: number[]) => string;
  open: Opener;
}

const inExplained = (what: string) => (index: number[]) => `explain(model, text).${what}${index.length ? `[${index.join(', ')}]` : ''}`;
const candidate = (journey: Journey, [t, id]: number[]) => journey.data.choices[t]?.likeliest.find((word) => word.id === id);
/** Its place among the words listed; −1: not among them. */
const ranking = (journey: Journey, [t, id]: number[]) => journey.data.choices[t]?.likeliest.findIndex((word) => word.id === id) ?? -1;
const isWritten = (journey: Journey, t: number, id: number) => journey.find('written_ids')?.at(t) === id;
const inside = (journey: Journey, index: number[]) => index.length === 3 && index.every((i, axis) => i < (journey.find('direct')?.shape[axis] ?? 0));

/** A logit as hidden · row: the page holds the row of the word written. */
function byChannel(j: Journey, t: number, id: number): Made {
  const [hidden, rows] = [j.find('hidden'), j.find('written_rows')];
  const how = 'the decoder’s last vector, channel by channel times the piece’s row of the output table, added up';
  if (!hidden || !rows || !isWritten(j, t, id)) return { how: `${how}; this page holds that row only for the piece written. The vector:`, from: [address('hidden', t)] };
  const terms: Term[] = products(hidden.row(t), rows.row(t)).map((value, c) => ({
    what: `channel ${c}:`, value, of: [['hidden', address('hidden', t, c)], ['× row', address('written_rows', t, c)]],
  }));
  return added(how, j.has('written_bias') ? [...terms, term(j, 'written_bias', t)] : terms);
}

/** Logarithm of the sum of all e^logit at a place, from the word written there. */
function logSum(journey: Journey, t: number): number | null {
  const id = journey.find('written_ids')?.at(t);
  const logP = journey.find('written_log_probabilities')?.at(t);
  const word = id === undefined ? undefined : candidate(journey, [t, id]);
  return word && logP !== undefined ? word.logit - logP : null;
}

/** Numbers of the lenses, the choices and the search: they stand beside the trace. */
const MEASURED: Record<string, Measured> = {
  probabilities: {
    at: (j, index) => candidate(j, index)?.probability,
    python: ([t, id]) => `trace["probabilities[${t},${id}]"]`,
    open: (j, _, [t, id]) => {
      const [logit, whole] = [candidate(j, [t, id])!.logit, logSum(j, t)];
      const parts = [{ what: 'logit', value: logit, of: [['', address('logits', t, id)]] as [string, string][] }, { what: 'logarithm of the sum of all e^logit', value: whole }];
      return { how: 'e to the power of the logit, divided by the sum over the whole list', parts, total: whole === null ? undefined : Math.exp(logit - whole) };
    },
  },
  logits: {
    at: (j, index) => candidate(j, index)?.logit,
    python: ([t, id]) => `trace["logits[${t},${id}]"]`,
    open: (j, _, [t, id]) => {
      const parts = partsOf(j, t, ranking(j, [t, id]));
      if (!parts) return byChannel(j, t, id);
      const terms = parts.map(({ name, value }, p) => ({ what: partSaid(name), value, of: [['', address('direct', p, t, ranking(j, [t, id]))]] as [string, string][] }));
      const channels = j.has('hidden') && isWritten(j, t, id) ? { from: [address('logits.by_channel', t, id)] } : {};
      const how = 'what the embedding, every head and every feed-forward part put straight into it, the norms on the way held as they were, added up';
      return { ...added(channels.from ? `${how}; or channel by channel:` : how, terms), ...channels };
    },
  },
  'logits.by_channel': {
    at: (j, [t, id]) => (isWritten(j, t, id) ? candidate(j, [t, id])?.logit : undefined),
    python: ([t]) => `trace["hidden[${t}]"] @ trace["written_rows[${t}]"]`,
    open: (j, _, [t, id]) => byChannel(j, t, id),
  },
  direct: {
    at: (j, [p, t, w]) => (inside(j, [p, t, w]) ? j.find('direct')!.at(p, t, w) : undefined),
    python: inExplained('direct.values'),
    open: (j, _, [p, t, w]) => {
      const part = j.data.direct!.labels[0]![p];
      const how = part === 'written_bias' ? 'what the output adds to this word wherever it is' : 'the vector this part added, through the norms on the way as they were, channel by channel times the word’s row of the output table (in the model’s folder, not in this page), added up. The vector:';
      return { how, from: part === 'written_bias' ? [] : [vectorOf(j, part, t)] };
    },
  },
  rest: {
    at: (j, [t]) => j.data.choices[t]?.rest,
    python: inExplained('choices'),
    open: (j, _, [t]) => {
      const terms: Term[] = j.data.choices[t].likeliest.map((word) => ({ what: word.text, token: true, value: word.probability, of: [['', address('probabilities', t, word.id)]] }));
      return { how: '1 less the probabilities of the pieces listed', terms, total: Math.max(0, 1 - sum(terms.map((x) => x.value!))) };
    },
  },
  log_probability: {
    at: (j, index) => (index.length ? undefined : j.data.log_probability),
    python: () => 'trace.log_probability',
    open: (j) => added('the log-probabilities of all pieces written, added up', j.data.tokens.written.map((what, t) => ({ ...term(j, 'written_log_probabilities', t), what, token: true }))),
  },
  left_out: {
    at: (j, [t, s]) => j.data.lenses.left_out.values[t]?.[s],
    python: inExplained('left_out.values'),
    open: (j, _, [t, s]) => deleted(j, t, j.data.tokens.source[s], j.data.lenses.left_out.values[t][s]),
  },
  'left_out.prefix': {
    at: (j, [t, s]) => j.data.lenses.left_out.prefix[t]?.[s],
    python: inExplained('left_out.prefix'),
    open: (j, _, [t, s]) => deleted(j, t, j.data.tokens.target[s], j.data.lenses.left_out.prefix[t][s]),
  },
  share: {
    at: (j, [t]) => j.data.lenses.share.values[t],
    python: inExplained('share.values'),
    open: (j, _, [t]) => {
      const size = (row: (number | null)[]) => sum(row.map((x) => Math.abs(x ?? 0)));
      const { values, prefix } = j.data.lenses.left_out;
      const [source, own] = [size(values[t]), size(prefix[t])];
      const parts = [{ what: 'sizes of all losses in row left_out, source pieces', value: source }, { what: 'the same for words written before (left_out.prefix)', value: own }];
      return { how: 'the source’s part of both together', parts, total: source / Math.max(source + own, 1e-30) };
    },
  },
  agreement: {
    at: (j, [i, h]) => j.data.lenses.agreement.values[i]?.[h],
    python: inExplained('agreement.values'),
    open: (j, _, [i, h]) => {
      const weights = j.find(`${j.data.lenses.agreement.labels[0]?.[i]}.pattern`);
      return weights && correlated(j, (t) => weights.row(h, t));
    },
  },
  'agreement.overall': {
    at: (j, index) => (index.length ? undefined : j.data.lenses.agreement.overall),
    python: inExplained('agreement.overall'),
    open: (j) => {
      const all = (j.data.lenses.agreement.labels[0] ?? []).map((path) => j.find(`${path}.pattern`));
      const mean = (t: number) => j.data.tokens.source.map((_, s) => sum(all.map((x) => sum(Array.from({ length: x!.shape[0] }, (_, h) => x!.at(h, t, s))) / x!.shape[0])) / all.length);
      return all.includes(null) ? { how: 'the mean of all attentions, ranked; this page does not hold all of them' } : correlated(j, mean);
    },
  },
  search: {
    at: (j, [n]) => j.data.search.nodes[n]?.log_probability,
    python: inExplained('search.nodes'),
    open: (j, _, [n]) => {
      const { nodes, path, same } = j.data.search;
      const node = nodes[n];
      const how = 'log-probability of this piece after the pieces before it, plus their sum';
      if (same && path.includes(n)) return added(`${how}; on the path of the output, from the pass in one go`, path.slice(0, path.indexOf(n) + 1).map((at, t) => ({ ...term(j, 'written_log_probabilities', t), what: nodes[at].text, token: true })));
      const before: Term[] = node.parent < 0 ? [] : [{ what: 'the sum before', value: nodes[node.parent].log_probability, of: [['', address('search', node.parent)]] }];
      return { how, parts: [...before, { what: 'this piece', value: node.log_probability - (before[0]?.value ?? 0) }] };
    },
  },
  'search.rank': {
    at: (j, [n]) => j.data.search.nodes[n]?.rank,
    python: inExplained('search.nodes'),
    open: (j, _, [n]) => {
      const { nodes, length_penalty: penalty } = j.data.search;
      const { log_probability: value, length } = nodes[n];
      const parts: Term[] = [{ what: 'sum of log-probabilities', value, of: [['', address('search', n)]] }, { what: 'length', value: length }, { what: 'length penalty', value: penalty }];
      return { how: 'the sum, divided by the length to the power of the length penalty', parts, total: value / length ** penalty };
    },
  },
  neighbours: {
    at: (j, [p, i]) => j.data.neighbours[p]?.[i]?.cosine,
    python: inExplained('neighbours'),
    open: (j, _, [p, i]) => ({ how: `cosine of the angle between two rows of the embedding table: that of ${j.data.tokens.source[p]} and that of ${j.data.neighbours[p][i].text}; the table is in the model’s folder` }),
  },
};

function deleted(journey: Journey, t: number, token: string, lost: number | null): Made {
  const whole = journey.find('written_log_probabilities')?.at(t) ?? null;
  const parts: Term[] = [
    { what: `log-probability of ${journey.data.tokens.written[t]}`, value: whole, of: [['', address('written_log_probabilities', t)]] },
    { what: `the same when ${token} was deleted and everything computed anew`, value: whole === null || lost === null ? null : whole - lost },
  ];
  return { how: lost === null ? 'not read yet at this place, or the start: it cannot be deleted' : 'the first less the second; below zero: the word became likelier', parts: lost === null ? [] : parts };
}

/** Spearman's ρ word by word between weights and the sizes of what deleting did, and its mean. */
function correlated(journey: Journey, weights: (t: number) => number[]): Made {
  const { left_out } = journey.data.lenses;
  const terms = journey.data.tokens.written.map((what, t) => ({ what, token: true, value: ranked(weights(t), left_out.values[t].map((x) => Math.abs(x ?? 0))) }));
  const known = terms.flatMap(({ value }) => (value === null ? [] : [value]));
  return { how: 'for every word written, the correlation of two rankings of the source pieces: by weight, and by what deleting did; then the mean', terms, total: known.length ? sum(known) / known.length : null };
}
