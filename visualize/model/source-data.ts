/** Where the page gets its data from: its server, or itself when it is a single file. */

import {
  addressElement,
  type Described,
  describePath,
  type Session,
  type Source,
  sessionElement,
  sessionPath,
  sourcesElement,
  sourcesPath,
  traceElement,
  tracePath,
} from '../../src/debugger/page-data.ts';
import { ownValue } from '../../src/runtime/json-object.ts';
import type { TraceHeader } from '../../src/runtime/trace/trace.ts';
import { remember, remembered } from './remembered.ts';

/** The traces lie below a path that nobody else knows: whoever has opened the page there once comes back by its root. */
const keyName = 'path';

/**
 * Keeps the path to the traces for the links to come, and takes it out of the address: what is copied there, or lies in the
 * browser's history, opens nothing for anybody else.
 */
export function keepPath(): void {
  const [, path] = /^\/([\w-]{32})\/$/.exec(location.pathname) ?? [];
  if (path === undefined || !location.protocol.startsWith('http')) return;
  remember(keyName, path);
  // Where nothing may be kept, the address goes on holding it.
  if (remembered(keyName) === path) history.replaceState(null, '', `/${location.hash}`);
}

/** The page came by a link, and this browser has not been where the traces are; or they are elsewhere by now. */
export class NotLetIn extends Error {
  constructor() {
    super('this browser has no access: open the address that chartpilot visualize printed, then the link again');
    this.name = 'NotLetIn';
  }
}

/** Of something below that path. @throws NotLetIn */
function addressOf(path: string): string {
  if (location.pathname !== '/') return path;
  const known = remembered(keyName);
  if (known === undefined) throw new NotLetIn();
  return `/${known}/${path}`;
}

/** A text that is there already is taken in pieces of so many characters. */
const pieceChars = 512 * 1024;

/** The traces that can be opened. @throws Error when the page's server does not answer, or refuses. */
export async function loadSources(): Promise<Source[]> {
  const inside = textInside(sourcesElement);
  return (inside === undefined ? await getJson(sourcesPath) : JSON.parse(inside)) as Source[];
}

/** Traces that a person gave to the page, by the numbers of their sources. */
const files = new Map<number, Blob>();
/** After a reload there is no more than their names. */
const droppedKey = 'chartpilot.dropped';

/** From now on a source is a file of the person's: it is read here, and sent nowhere. */
export function addFile(source: number, name: string, file: Blob): void {
  files.set(source, file);
  try {
    sessionStorage.setItem(droppedKey, JSON.stringify({ ...droppedNames(), [source]: name }));
  } catch {
    // Then a reload says that there is no such source.
  }
}

/** What was dropped as a source of this number since the window was opened. */
export function droppedName(source: number): string | undefined {
  const name = droppedNames()[source];
  return typeof name === 'string' ? name : undefined;
}

function droppedNames(): Readonly<Record<number, unknown>> {
  try {
    return Object(JSON.parse(sessionStorage.getItem(droppedKey) ?? '{}')) as Readonly<Record<number, unknown>>;
  } catch {
    return {};
  }
}

/** Where the page opens when its address does not say: a file that was made for a colleague does. */
export function addressInside(): string {
  return (JSON.parse(textInside(addressElement) ?? '""') as unknown as string) || '';
}

/**
 * What belongs to a trace beside its records.
 *
 * @throws Error as {@link loadSources}
 */
export async function loadSession(source: number, header: TraceHeader, signal: AbortSignal): Promise<Session> {
  if (files.has(source)) return describe(header, signal);
  const inside = textInside(sessionElement(source));
  const found = (inside === undefined ? await getJson(sessionPath(source), signal) : JSON.parse(inside)) as Session;
  for (const machine of header.machines) {
    const chart = ownValue(found.charts, machine.id);
    // A file that an earlier version has written has no brief ones.
    const brief = ownValue(found.briefCharts, machine.id) ?? [];
    if (chart !== undefined) knownPictures.set(JSON.stringify(machine), { chart, brief });
  }
  knownDiagrams.set(header.program, found.diagrams);
  return found;
}

/** What the page has shown: by a machine's definition, and by a program's name. */
const knownPictures = new Map<string, { readonly chart: string; readonly brief: Session['briefCharts'][string] }>();
const knownDiagrams = new Map<string, Session['diagrams']>();

/** A page without a server has the pictures that it has shown: those of machines that are exactly the same. */
async function describe({ program, machines }: TraceHeader, signal: AbortSignal): Promise<Session> {
  if (textInside(sourcesElement) !== undefined) {
    const known = machines.flatMap((machine) => {
      const pictures = knownPictures.get(JSON.stringify(machine));
      return pictures === undefined ? [] : [[machine.id, pictures] as const];
    });
    return {
      charts: Object.fromEntries(known.map(([id, { chart }]) => [id, chart])),
      briefCharts: Object.fromEntries(known.map(([id, { brief }]) => [id, brief])),
      diagrams: knownDiagrams.get(program) ?? [],
    };
  }
  const described: Described = { program, machines };
  const body = JSON.stringify(described);
  const answer = await fetch(addressOf(describePath), { method: 'POST', body, signal, cache: 'no-store' });
  if (!answer.ok) throw await refusalOf(answer);
  return (await answer.json()) as Session;
}

/** A file that the page is made of. @throws Error as {@link loadSources} */
export async function loadOwnText(name: 'page.js' | 'page.css'): Promise<string> {
  if (textInside(sourcesElement) !== undefined) {
    const own = name === 'page.js' ? [...document.scripts].at(-1) : document.querySelector('style');
    return own?.textContent ?? '';
  }
  const answer = await fetch(`/${name}`, { cache: 'no-store' });
  if (!answer.ok) throw await refusalOf(answer);
  return answer.text();
}

/**
 * A trace as text, in pieces of any length. That of a live program goes on until the program ends.
 *
 * @throws Error when the server refuses, or when the connection breaks.
 */
export async function* traceTexts(source: number, signal: AbortSignal): AsyncGenerator<string> {
  const file = files.get(source);
  if (file !== undefined) {
    yield* pieces(file.stream());
    return;
  }
  const inside = textInside(traceElement(source));
  if (inside !== undefined) {
    for (let at = 0; at < inside.length; at += pieceChars) yield inside.slice(at, at + pieceChars);
    return;
  }
  const answer = await fetch(addressOf(tracePath(source)), { signal, cache: 'no-store' });
  if (!answer.ok) throw await refusalOf(answer);
  yield* pieces(answer.body!);
}

async function* pieces(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
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
  const answer = await fetch(addressOf(path), { cache: 'no-store', ...(signal !== undefined && { signal }) });
  if (!answer.ok) throw await refusalOf(answer);
  return answer.json();
}

async function refusalOf(answer: Response): Promise<Error> {
  const said: unknown = await answer.json().catch(() => undefined);
  const reason = (said as { reason?: unknown } | undefined)?.reason;
  if (typeof reason === 'string') return new Error(reason);
  // The path is that of a server that ran here before: each has its own.
  if (answer.status === 404 && location.pathname === '/') return new NotLetIn();
  return new Error(`The server of this page responded with status ${answer.status}.`);
}

function textInside(id: string): string | undefined {
  return document.getElementById(id)?.textContent ?? undefined;
}
