// Where the candidates of a beam search stand: a column per step; in it those that went on, then those that were
// pruned, the likelier the higher.
import type { Node } from './document';

export interface Placed extends Node {
  index: number;
  row: number;
  children: number[];
}

export interface Column {
  /** Places of its candidates among all, from the top. */
  nodes: number[];
  /** How many of them, from the top, were not pruned. */
  kept: number;
}

export interface Layout {
  placed: Placed[];
  columns: Column[];
  rows: number;
}

export function layout(nodes: Node[], shown: (index: number) => boolean): Layout {
  const placed: Placed[] = nodes.map((node, index) => ({ ...node, index, row: 0, children: [] }));
  const columns: Column[] = [];
  for (const node of placed) {
    if (!shown(node.index)) continue;
    (columns[node.length - 1] ??= { nodes: [], kept: 0 }).nodes.push(node.index);
    if (node.parent >= 0) placed[node.parent].children.push(node.index);
  }
  const lost = (index: number) => Number(placed[index].fate === 'pruned');
  for (const column of columns) {
    column.nodes.sort((a, b) => lost(a) - lost(b) || placed[b].log_probability - placed[a].log_probability);
    column.kept = column.nodes.filter((index) => !lost(index)).length;
    column.nodes.forEach((index, row) => (placed[index].row = row));
  }
  return { placed, columns, rows: Math.max(0, ...columns.map((column) => column.nodes.length)) };
}
