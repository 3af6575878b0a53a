/**
 * Profiles for Chrome's DevTools, at `/debug/pprof/…`, for callers on this host with the debugger's token. Heap snapshots contain every string in
 * memory, so they are disabled by default.
 */
import type { ServerResponse } from 'node:http';
import type { Session } from 'node:inspector/promises';
import { pipeline } from 'node:stream/promises';
import { getHeapSnapshot } from 'node:v8';
import type { AccessRefusal, Caller, DebuggerAccess } from './trace/debugger-access.ts';
import type { StreamResponse } from './trace/trace-endpoint.ts';

export const profilingPath = '/debug/pprof';

const defaultSeconds = 30;
const maxSeconds = 120;

const pages: readonly (readonly [string, string])[] = [
  ['profile?seconds=30', 'where the time goes: a .cpuprofile'],
  ['allocs?seconds=30', 'memory allocations as a .heapprofile'],
  [
    'heap',
    // Measured: for a heap of 63 MB the first snapshot increased the process from 158 MB to 960 MB, the next two not
    // further.
    'the whole heap as a .heapsnapshot, secrets included (requires --heapSnapshots). Blocks the program, for seconds in a large mesh, ' +
      'and needs up to 15 times the heap size of additional memory, which is not released',
  ],
  ['goroutine', 'open handles by kind, connections by state'],
];

const heapSnapshotsDisabled =
  'refused: a heap snapshot holds private keys and tokens; --heapSnapshots serves it to callers with the token\n';

export interface ProfilerOptions {
  readonly access: Pick<DebuggerAccess, 'refusalOf'>;
  readonly heapSnapshots: boolean;
  readonly connectionStates?: () => Iterable<string>;
}

export interface ProfileRequest extends Caller {
  readonly path: string;
  readonly query: URLSearchParams;
}

export interface ProfileResponse {
  readonly status: number;
  readonly body: string;
  readonly contentType?: string;
}

export class Profiler {
  readonly #options: ProfilerOptions;
  #runningProfile: AbortController | undefined;

  constructor(options: ProfilerOptions) {
    this.#options = options;
  }

  respond(request: ProfileRequest): ProfileResponse | AccessRefusal | StreamResponse {
    const refusal = this.#options.access.refusalOf(request, { methods: ['GET', 'HEAD'] });
    if (refusal !== undefined) return refusal;
    const name = request.path.slice(profilingPath.length).replace(/^\//, '');
    switch (name) {
      case '':
        return { status: 200, body: indexPage(), contentType: 'text/html; charset=utf-8' };
      case 'goroutine':
        return { status: 200, body: this.#describeWaiting() };
      case 'profile':
      case 'allocs':
        return this.#recordProfile(name, request.query);
      case 'heap':
        if (!this.#options.heapSnapshots) return { status: 403, body: heapSnapshotsDisabled };
        return this.#runExclusively('heap.heapsnapshot', (response) => pipeline(getHeapSnapshot(), response));
      default:
        return { status: 404, body: `no profile ${name}; ${profilingPath}/ lists the profiles\n` };
    }
  }

  end(): void {
    this.#runningProfile?.abort();
  }

  #recordProfile(kind: 'profile' | 'allocs', query: URLSearchParams): ProfileResponse | StreamResponse {
    const seconds = Number(query.get('seconds') ?? defaultSeconds);
    if (!(seconds > 0 && seconds <= maxSeconds)) {
      return { status: 400, body: `seconds must be above 0 and at most ${maxSeconds}\n` };
    }
    const record = kind === 'profile' ? recordTime : recordAllocations;
    const file = kind === 'profile' ? 'profile.cpuprofile' : 'allocs.heapprofile';
    return this.#runExclusively(file, async (response, signal) => {
      const profile = await record(seconds * 1_000, signal);
      if (!response.destroyed) response.end(JSON.stringify(profile));
    });
  }

  #runExclusively(
    file: string,
    writeProfile: (response: ServerResponse, signal: AbortSignal) => Promise<void>,
  ): ProfileResponse | StreamResponse {
    if (this.#runningProfile !== undefined) return { status: 503, body: 'another profile is in progress\n' };
    const controller = new AbortController();
    this.#runningProfile = controller;
    return {
      stream: (response) => {
        response.on('close', () => controller.abort());
        controller.signal.addEventListener('abort', () => response.destroy());
        response.writeHead(200, {
          'content-type': 'application/json',
          'content-disposition': `attachment; filename="${file}"`,
          connection: 'close',
        });
        // Notifies the caller that the recording has started.
        response.flushHeaders();
        writeProfile(response, controller.signal)
          .catch(() => response.destroy())
          .finally(() => {
            this.#runningProfile = undefined;
          });
      },
    };
  }

  #describeWaiting(): string {
    const handles = countOf(process.getActiveResourcesInfo());
    const lines = (counts: ReadonlyMap<string, number>): string =>
      [...counts].map(([name, count]) => `${String(count).padStart(8)}  ${name}\n`).join('');
    const states = this.#options.connectionStates?.();
    const connections = states === undefined ? '' : `\nxDS connections by state\n${lines(countOf(states))}`;
    return `open handles and requests\n${lines(handles)}${connections}`;
  }
}

function recordTime(ms: number, signal: AbortSignal): Promise<object> {
  return withSession(async (session) => {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await waitFor(ms, signal);
    return (await session.post('Profiler.stop')).profile;
  });
}

function recordAllocations(ms: number, signal: AbortSignal): Promise<object> {
  return withSession(async (session) => {
    await session.post('HeapProfiler.startSampling');
    await waitFor(ms, signal);
    return (await session.post('HeapProfiler.stopSampling')).profile;
  });
}

async function withSession(record: (session: Session) => Promise<object>): Promise<object> {
  // Loaded on first use, because few programs are ever profiled.
  const inspector = await import('node:inspector/promises');
  const session = new inspector.Session();
  session.connect();
  try {
    return await record(session);
  } finally {
    session.disconnect();
  }
}

/** Also resolves when the request is aborted. Does not keep the process alive. */
function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  timer.unref();
  signal.addEventListener('abort', () => {
    clearTimeout(timer);
    resolve();
  });
  return promise;
}

function countOf(names: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return new Map([...counts].sort(([a], [b]) => (a < b ? -1 : 1)));
}

function indexPage(): string {
  const rows = pages.map(
    ([path, description]) => `<li><a href="${profilingPath}/${path}">${path}</a>: ${description}</li>`,
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>profiles</title><h1>Profiles</h1><p>One at a time, at most ${maxSeconds} seconds; Chrome's DevTools open them.</p><ul>${rows.join('\n')}</ul></html>\n`;
}
