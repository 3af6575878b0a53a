/** The fragment (`#…`) of the page's address contains the current place. */

/** Users set far fewer, but a link may contain more. */
export const maxMarks = 100;

/** Browsers and mails do not support longer addresses. */
const maxActorChars = 2_000;

export interface Address {
  readonly source?: number;
  readonly record?: number;
  readonly actor?: string;
  /** `seq` of the first and the last record. */
  readonly range?: readonly [number, number];
  readonly marks?: readonly number[];
}

/** Invalid fields are ignored, because a link may be old or edited. */
export function parseAddress(hash: string): Address {
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  const source = countOf(fields.get('source'));
  const record = countOf(fields.get('record'));
  const actor = fields.get('actor');
  const [first, last] = (fields.get('range') ?? '').split('-').map(countOf);
  const marks = (fields.get('marks') ?? '').split(',').flatMap((mark) => countOf(mark) ?? []);
  return {
    ...(source !== undefined && { source }),
    ...(record !== undefined && { record }),
    ...(actor !== null && actor !== '' && { actor }),
    ...(first !== undefined && last !== undefined && first <= last && { range: [first, last] as const }),
    ...(marks.length > 0 && { marks: [...new Set(marks)].sort((a, b) => a - b).slice(0, maxMarks) }),
  };
}

/** Names are not percent-encoded unless required. */
export function formatAddress({ source, record, actor, range, marks = [] }: Address): string {
  const fields = [
    ...(source === undefined ? [] : [`source=${source}`]),
    ...(record === undefined ? [] : [`record=${record}`]),
    ...(actor === undefined || actor.length > maxActorChars
      ? []
      : [`actor=${encodeURIComponent(actor).replaceAll('%2F', '/')}`]),
    ...(range === undefined ? [] : [`range=${range[0]}-${range[1]}`]),
    ...(marks.length === 0 ? [] : [`marks=${marks.join(',')}`]),
  ];
  return `#${fields.join('&')}`;
}

function countOf(text: string | null | undefined): number | undefined {
  return text !== null && text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
