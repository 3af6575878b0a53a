/** The page with all data in a single file that works without a server or network. */
import { createHash } from 'node:crypto';
import { sessionElement, sourcesElement, traceElement } from '../page-data.ts';
import { escapeTags, inlineScript, jsonElement, splitPage, traceTags } from '../page-text.ts';
import { readPageFiles } from './page-files.ts';
import { Sessions } from './page-session.ts';
import type { PageSource } from './page-source.ts';

export interface SingleFileOptions {
  readonly sources: readonly PageSource[];
  readonly diagrams?: string;
}

/** The text is returned in pieces, because a trace may be large. The trace of a live program ends at its current record. */
export async function* singleFile({ sources, diagrams }: SingleFileOptions): AsyncGenerator<string> {
  const files = readPageFiles();
  const hash = createHash('sha256').update(inlineScript(files['page.js'])).digest('base64');
  const { textBefore, behind } = splitPage(files, hash);
  yield textBefore;
  yield* dataOf(sources, new Sessions(diagrams));
  yield behind;
}

async function* dataOf(sources: readonly PageSource[], sessions: Sessions): AsyncGenerator<string> {
  yield jsonElement(
    sourcesElement,
    sources.map(({ name, place }) => ({ name, kind: 'file', place })),
  );
  for (const [number, source] of sources.entries()) {
    yield jsonElement(sessionElement(number), await sessions.sessionOf(await source.header()));
    const [openTag, closeTag] = traceTags(traceElement(number));
    yield openTag;
    const trace = (await source.read({ follow: false })).setEncoding('utf8');
    for await (const chunk of trace) yield escapeTags(chunk as string);
    yield closeTag;
  }
}
