/** Where the page gets its data from: its server, or itself when it is a single file. */
import {
  type Session,
  type Source,
  sessionElement,
  sessionPath,
  sourcesElement,
  sourcesPath,
  traceElement,
  tracePath,
} from '../../src/debugger/page-data.ts';

/** A text that is there already is taken in pieces of so many characters. */
const pieceChars = 512 * 1024;

/** The traces that can be opened. @throws Error when the page's server does not answer, or refuses. */
export async function loadSources(): Promise<Source[]> {
  const inside = textInside(sourcesElement);
  return (inside === undefined ? await getJson(sourcesPath) : JSON.parse(inside)) as Source[];
}

/** What belongs to a trace beside its records. @throws Error as {@link loadSources}. */
export async function loadSession(source: number, signal: AbortSignal): Promise<Session> {
  const inside = textInside(sessionElement(source));
  return (inside === undefined ? await getJson(sessionPath(source), signal) : JSON.parse(inside)) as Session;
}

/**
 * A trace as text, in pieces of any length. That of a live program goes on until the program ends.
 *
 * @throws Error when the server refuses, or when the connection breaks.
 */
export async function* traceTexts(source: number, signal: AbortSignal): AsyncGenerator<string> {
  const inside = textInside(traceElement(source));
  if (inside !== undefined) {
    for (let at = 0; at < inside.length; at += pieceChars) yield inside.slice(at, at + pieceChars);
    return;
  }
  const answer = await fetch(tracePath(source), { signal, cache: 'no-store' });
  if (!answer.ok) throw new Error(await refusalOf(answer));
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // Left early (begun anew, another source): the server must not go on sending.
    void reader.cancel().catch(() => {});
  }
}

async function getJson(path: string, signal?: AbortSignal): Promise<unknown> {
  const answer = await fetch(path, { cache: 'no-store', ...(signal !== undefined && { signal }) });
  if (!answer.ok) throw new Error(await refusalOf(answer));
  return answer.json();
}

async function refusalOf(answer: Response): Promise<string> {
  const said: unknown = await answer.json().catch(() => undefined);
  const reason = (said as { reason?: unknown } | undefined)?.reason;
  return typeof reason === 'string' ? reason : `The page's server answers ${answer.status}.`;
}

function textInside(id: string): string | undefined {
  return document.getElementById(id)?.textContent ?? undefined;
}
