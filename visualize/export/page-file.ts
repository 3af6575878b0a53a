/** One file with the page and a part of the open trace, which opens at the current place. */
import type { Session } from '../../src/debugger/page-data.ts';
import { addressElement, sessionElement, sourcesElement, traceElement } from '../../src/debugger/page-data.ts';
import {
  escapeTags,
  inlineScript,
  jsonElement,
  type PageTexts,
  splitPage,
  traceTags,
} from '../../src/debugger/page-text.ts';
import indexHtml from '../index.html';
import { type Address, formatAddress } from '../model/address.ts';
import { loadOwnText } from '../model/source-data.ts';

export interface FilePart {
  readonly name: string;
  readonly trace: string;
  readonly session: Session;
  readonly address: Address;
}

/** @throws Error if the page's server does not respond */
export async function pageFile({ name, trace, session, address }: FilePart): Promise<Blob> {
  const texts: PageTexts = {
    'index.html': indexHtml,
    'page.js': await loadOwnText('page.js'),
    'page.css': await loadOwnText('page.css'),
  };
  const { textBefore, behind } = splitPage(texts, await hashOf(inlineScript(texts['page.js'])));
  const [openTag, closeTag] = traceTags(traceElement(0));
  const data = [
    // The path would reveal the user's folders.
    jsonElement(sourcesElement, [{ name, kind: 'file', place: name }]),
    jsonElement(sessionElement(0), session),
    jsonElement(addressElement, formatAddress({ ...address, source: 0 })),
    openTag + escapeTags(trace) + closeTag,
  ];
  return new Blob([textBefore, ...data, behind], { type: 'text/html;charset=utf-8' });
}

async function hashOf(script: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(script));
  return btoa(String.fromCharCode(...new Uint8Array(digest)));
}
