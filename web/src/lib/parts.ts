// What each part of the decoder put straight into the logits of the words listed: explore/document.py's `direct`.
// Knows names and numbers. Refuses to know pictures.
import { address, type Journey } from './document';
import { said } from './numbers';

/** decoder.layers.0.cross_attention.heads[1] → layer 0, cross-attention, head 1 */
export function partSaid(name: string): string {
  if (name === 'written_bias') return 'the word’s own bias';
  if (name === 'decoder.norm.bias') return 'the last norm’s shift';
  return said(name.replace(/^decoder\./, '.'))
    .replace(/^, /, '')
    .replace(/heads\[(\d+)\]/, 'head $1')
    .replace('out bias', 'its output’s bias')
    .replace('feed-forward, out', 'feed-forward')
    .replace('residual, norm, bias', 'norm’s shift')
    .replace('target embedding, tokens', 'embedding of the piece before')
    .replace('target embedding, positions', 'its position');
}

/** Where the vector stands that this part added to the stream at place t. */
export function vectorOf(journey: Journey, part: string, t: number): string {
  const head = /^(.+\.heads)\[(\d+)\]$/.exec(part);
  if (head) return address(head[1], Number(head[2]), t);
  if (part === 'written_bias' || part.endsWith('bias')) return part;
  return address(part, t);
}

export interface Part {
  name: string;
  /** Its contribution, in the order of the trace's parts. */
  value: number;
}

/** Every part's contribution to the logit of the w-th word listed at place t; null where the page does not hold them. */
export function partsOf(journey: Journey, t: number, w: number): Part[] | null {
  const [held, names] = [journey.find('direct'), journey.data.direct?.labels[0]];
  if (!held || !names || w < 0) return null;
  return names.map((name, p) => ({ name, value: held.at(p, t, w) }));
}
