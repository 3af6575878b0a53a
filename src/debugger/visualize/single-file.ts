/** The page with everything in it: one file that can be mailed, kept for years, and opened without a network. */
import { createHash } from 'node:crypto';
import { sessionElement, sourcesElement, traceElement } from '../page-data.ts';
import { type PageFiles, readPageFiles } from './page-files.ts';
import { Sessions } from './page-session.ts';
import type { PageSource } from './page-source.ts';

export interface SingleFileOptions {
  readonly sources: readonly PageSource[];
  /** What every trace is held against; the diagrams of its program unless given. */
  readonly diagrams?: string;
}

/** Its text, piece by piece: a trace may be large. Of a live program what there is now. */
export async function* singleFile({ sources, diagrams }: SingleFileOptions): AsyncGenerator<string> {
  const files = readPageFiles();
  const script = inlineScript(files['page.js']);
  const [head, body] = split(files['index.html'], '<script src="page.js"></script>');
  yield withStyles(head, files['page.css'], script);
  yield* dataOf(sources, new Sessions(diagrams));
  yield `<script>${script}</script>${body}`;
}

async function* dataOf(sources: readonly PageSource[], sessions: Sessions): AsyncGenerator<string> {
  const described = sources.map(({ name, place }) => ({ name, kind: 'file', place }));
  yield data('application/json', sourcesElement, JSON.stringify(described));
  for (const [number, source] of sources.entries()) {
    const session = await sessions.of(await source.header());
    yield data('application/json', sessionElement(number), JSON.stringify(session));
    yield `<script type="text/plain" id="${traceElement(number)}">`;
    const trace = (await source.read({ follow: false })).setEncoding('utf8');
    for await (const piece of trace) yield withoutTags(piece as string);
    yield '</script>\n';
  }
}

function data(type: string, id: string, text: string): string {
  return `<script type="${type}" id="${id}">${withoutTags(text)}</script>\n`;
}

/** JSON has a < only inside of strings. */
function withoutTags(json: string): string {
  return json.replaceAll('<', '\\u003c');
}

/** In JavaScript as in JSON, such a text stands only inside of a string, where the escape means the same. */
function inlineScript(script: string): string {
  return script
    .replace(/\n?\/\/# sourceMappingURL=.*\s*$/, '')
    .replaceAll('</script', '\\x3c/script')
    .replaceAll('<!--', '\\x3c!--');
}

function withStyles(head: string, styles: PageFiles['page.css'], script: string): string {
  const hash = createHash('sha256').update(script).digest('base64');
  // No connect-src: there is nothing to ask anybody for.
  const policy = `default-src 'none'; script-src 'sha256-${hash}'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'`;
  const [before, after] = split(head, '<link rel="stylesheet" href="page.css">');
  const [top, rest] = split(before, '<meta charset="utf-8">');
  const css = styles.replace(/\n?\/\*# sourceMappingURL=.*\s*$/, '').replaceAll('</style', '<\\/style');
  return `${top}<meta charset="utf-8">\n    <meta http-equiv="Content-Security-Policy" content="${policy}">${rest}<style>${css}</style>${after}`;
}

function split(html: string, at: string): [string, string] {
  const place = html.indexOf(at);
  if (place === -1) throw new Error(`visualize/index.html holds no ${at}`);
  return [html.slice(0, place), html.slice(place + at.length)];
}
