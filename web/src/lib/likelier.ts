// Why a word that is not the likeliest at its place was written all the same: by how the output came about.
import type { PageData } from './document';

export function because(data: PageData): string {
  const begun = data.facts.begun ? ' It was also made to begin with given words.' : '';
  const { output } = data.provenance;
  if (output.startsWith('beam')) return `A search judges the whole output: it keeps a word that is not the likeliest at its place for what can come after it.${begun}`;
  if (output === 'sample') return `The words were drawn, the likelier the more often.${begun}`;
  return data.facts.begun ? 'The output was made to begin with given words.' : 'Two words were as likely, or the likeliest may not be written here.';
}
