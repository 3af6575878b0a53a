/** Loads traces and their sessions from the page's server, or from the page itself if it is a single file. */

import {
  addressElement,
  describePath,
  type Session,
  type Source,
  sessionElement,
  sessionPath,
  sourcesElement,
  sourcesPath,
  type TraceDescription,
  traceElement,
  tracePath,
} from '../../src/debugger/page-data.ts';
import { ownValue } from '../../src/runtime/json-object.ts';
import type { TraceHeader } from '../../src/runtime/trace/trace.ts';
import { storedValue, storeValue } from './page-storage.ts';

/** The traces are below a secret path. A browser that has opened the page there can return via the root address. */
const keyName = 'path';

/** Removes the path from the address, so that copied addresses and the browser's history grant no access. */
export function rememberPath(): void {
  const [, path] = /^\/([\w-]{32})\/$/.exec(location.pathname) ?? [];
  if (path === undefined || !location.protocol.startsWith('http')) return;
  storeValue(keyName, path);
  // Without storage, the address keeps the path.
  if (storedValue(keyName) === path) history.replaceState(null, '', `/${location.hash}`);
}

/** The page was opened by a link in a browser without the current secret path. */
export class AccessDenied extends Error {
  constructor() {
    super('this browser has no access: open the address that chartpilot visualize printed, then the link again');
    this.name = 'AccessDenied';
  }
}

/** @throws AccessDenied */
function addressOf(path: string): string {
  if (location.pathname !== '/') return path;
  const token = storedValue(keyName);
  if (token === undefined) throw new AccessDenied();
  return `/${token}/${path}`;
}

const pieceChars = 512 * 1024;

/** @throws Error if the page's server does not respond, or refuses the request */
export async function loadSources(): Promise<Source[]> {
  const sourcesText = textInside(sourcesElement);
  return (sourcesText === undefined ? await getJson(sourcesPath) : JSON.parse(sourcesText)) as Source[];
}

const files = new Map<number, Blob>();
/** Session storage key of dropped files' names; the contents do not survive a reload. */
const droppedKey = 'chartpilot.dropped';

export function addFile(source: number, name: string, file: Blob): void {
  files.set(source, file);
  try {
    sessionStorage.setItem(droppedKey, JSON.stringify({ ...droppedNames(), [source]: name }));
  } catch {
    // Without storage, a reload reports that the source does not exist.
  }
}

/** Name of the file that was opened as this source in the current session of the window. */
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

/** An exported file sets the initial fragment. */
export function addressInside(): string {
  return (JSON.parse(textInside(addressElement) ?? '""') as unknown as string) || '';
}

/** @throws Error as {@link loadSources} */
export async function loadSession(source: number, header: TraceHeader, signal: AbortSignal): Promise<Session> {
  if (files.has(source)) return describe(header, signal);
  const sessionText = textInside(sessionElement(source));
  const sessionData = (
    sessionText === undefined ? await getJson(sessionPath(source), signal) : JSON.parse(sessionText)
  ) as Session;
  for (const machine of header.machines) {
    const chart = ownValue(sessionData.charts, machine.id);
    // Servers of an earlier version send no brief pictures.
    const brief = ownValue(sessionData.briefCharts, machine.id) ?? [];
    if (chart !== undefined) cachedPictures.set(JSON.stringify(machine), { chart, brief });
  }
  cachedDiagrams.set(header.program, sessionData.diagrams);
  return sessionData;
}

/** By machine definition and program name. */
const cachedPictures = new Map<string, { readonly chart: string; readonly brief: Session['briefCharts'][string] }>();
const cachedDiagrams = new Map<string, Session['diagrams']>();

/** Without a server, the page has only pictures that it has shown before. */
async function describe({ program, machines }: TraceHeader, signal: AbortSignal): Promise<Session> {
  if (textInside(sourcesElement) !== undefined) {
    const drawnMachines = machines.flatMap((machine) => {
      const pictures = cachedPictures.get(JSON.stringify(machine));
      return pictures === undefined ? [] : [[machine.id, pictures] as const];
    });
    return {
      charts: Object.fromEntries(drawnMachines.map(([id, { chart }]) => [id, chart])),
      briefCharts: Object.fromEntries(drawnMachines.map(([id, { brief }]) => [id, brief])),
      diagrams: cachedDiagrams.get(program) ?? [],
    };
  }
  const description: TraceDescription = { program, machines };
  const body = JSON.stringify(description);
  const response = await fetch(addressOf(describePath), { method: 'POST', body, signal, cache: 'no-store' });
  if (!response.ok) throw await errorOfResponse(response);
  return (await response.json()) as Session;
}

/** @throws Error as {@link loadSources} */
export async function loadOwnText(name: 'page.js' | 'page.css'): Promise<string> {
  if (textInside(sourcesElement) !== undefined) {
    const element = name === 'page.js' ? [...document.scripts].at(-1) : document.querySelector('style');
    return element?.textContent ?? '';
  }
  const response = await fetch(`/${name}`, { cache: 'no-store' });
  if (!response.ok) throw await errorOfResponse(response);
  return response.text();
}

/** @throws Error if the server refuses the request, or the connection breaks */
export async function* traceTexts(source: number, signal: AbortSignal): AsyncGenerator<string> {
  const file = files.get(source);
  if (file !== undefined) {
    yield* readChunks(file.stream());
    return;
  }
  const traceText = textInside(traceElement(source));
  if (traceText !== undefined) {
    for (let offset = 0; offset < traceText.length; offset += pieceChars)
      yield traceText.slice(offset, offset + pieceChars);
    return;
  }
  const response = await fetch(addressOf(tracePath(source)), { signal, cache: 'no-store' });
  if (!response.ok) throw await errorOfResponse(response);
  yield* readChunks(response.body!);
}

async function* readChunks(stream: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    // The reader stopped early (another source, a reload), so the server must stop sending.
    void reader.cancel().catch(() => {});
  }
}

async function getJson(path: string, signal?: AbortSignal): Promise<unknown> {
  const response = await fetch(addressOf(path), { cache: 'no-store', ...(signal !== undefined && { signal }) });
  if (!response.ok) throw await errorOfResponse(response);
  return response.json();
}

async function errorOfResponse(response: Response): Promise<Error> {
  const errorBody: unknown = await response.json().catch(() => undefined);
  const reason = (errorBody as { reason?: unknown } | undefined)?.reason;
  if (typeof reason === 'string') return new Error(reason);
  // The stored path belongs to an earlier server on this host.
  if (response.status === 404 && location.pathname === '/') return new AccessDenied();
  return new Error(`The server of this page responded with status ${response.status}.`);
}

function textInside(id: string): string | undefined {
  return document.getElementById(id)?.textContent ?? undefined;
}
