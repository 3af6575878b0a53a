import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { header } from '../../../test/fixtures/random-records.ts';
import { eventually } from '../../../test/harness/eventually.ts';
import { uncaughtErrors } from '../../../test/harness/uncaught-errors.ts';
import { msWithoutQueueing } from '../../../test/harness/without-queueing.ts';
import type { TraceLine } from './trace.ts';
import { TraceRing } from './trace-ring.ts';
import { HttpTraceStream, type TraceStreamOptions } from './trace-stream.ts';

/** A program with a ring, and a server that accepts any viewer. */
class Program {
  readonly ring: TraceRing;
  readonly stream: HttpTraceStream;
  readonly responses: ServerResponse[] = [];
  readonly #text: string;
  #seq = 0;
  #port = 0;

  constructor({ capacity = 20_000, textLength = 10, ...options }: TestProgramOptions = {}) {
    this.ring = new TraceRing(capacity);
    this.ring.write(header);
    this.stream = new HttpTraceStream(this.ring, options);
    this.#text = 'x'.repeat(textLength);
  }

  static async start(options: TestProgramOptions = {}): Promise<Program> {
    const program = new Program(options);
    const server = createServer((request, response) => {
      program.responses.push(response);
      program.stream.attach(response, { follow: !request.url!.includes('follow=false') });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    program.#port = (server.address() as AddressInfo).port;
    onTestFinished(() => {
      server.close();
      server.closeAllConnections();
    });
    return program;
  }

  record(count = 1): void {
    for (let i = 0; i < count; i++) {
      const seq = ++this.#seq;
      this.ring.write({ seq, t: seq, kind: 'log', actor: 'a', level: 'info', text: this.#text });
    }
  }

  async view(query = ''): Promise<View> {
    const request = get({ port: this.#port, host: '127.0.0.1', path: `/${query}`, agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return new View(response);
  }

  async stuck(): Promise<Socket> {
    const socket = connect(this.#port, '127.0.0.1');
    socket.pause();
    socket.on('error', () => {});
    socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n');
    await eventually('it is attached', () => this.responses.length > 0);
    return socket;
  }
}

type TestProgramOptions = TraceStreamOptions & { capacity?: number; textLength?: number };

class View {
  readonly response: IncomingMessage;
  text = '';
  /** Number of received lines; parsing them takes longer than sending them. */
  count = 0;
  /** `end` when the response is complete. */
  over: 'end' | 'broken off' | undefined;

  constructor(response: IncomingMessage) {
    this.response = response;
    response.setEncoding('utf8').on('data', (chunk: string) => {
      this.text += chunk;
      for (let at = chunk.indexOf('\n'); at >= 0; at = chunk.indexOf('\n', at + 1)) this.count++;
    });
    response.on('end', () => (this.over ??= 'end'));
    response.on('error', () => (this.over ??= 'broken off'));
  }

  get lines(): TraceLine[] {
    return this.text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as TraceLine);
  }

  get numbers(): (number | 'header')[] {
    return this.lines.map((line) => (line.kind === 'header' ? 'header' : line.seq));
  }

  has(count: number): Promise<unknown> {
    return eventually(`${count} lines`, () => this.count >= count);
  }

  ended(): Promise<unknown> {
    return eventually('the answer is over', () => this.over);
  }
}

const upTo = (last: number): (number | 'header')[] => ['header', ...Array.from({ length: last }, (_, i) => i + 1)];

test('a viewer of a trace receives the header, the recorded records, and then each new record', async () => {
  const program = await Program.start();
  program.record(3);
  const view = await program.view();
  expect(view.response.headers['content-type']).toBe('application/x-ndjson');
  await view.has(4);
  program.record();
  await view.has(5);
  program.record(1_200);
  await view.has(1_205);
  expect(view.numbers).toEqual(upTo(1_204));
  expect(view.over).toBeUndefined();
});

test('a viewer of a trace with follow=false receives only the available records', async () => {
  const program = await Program.start();
  program.record(1_300);
  const view = await program.view('?follow=false');
  program.record(5);
  await view.ended();
  expect([view.over, view.numbers]).toEqual(['end', upTo(1_300)]);
  const emptyView = await (await Program.start()).view('?follow=false');
  await emptyView.ended();
  expect([emptyView.over, emptyView.numbers]).toEqual(['end', ['header']]);
});

test('the header of a ring that has dropped records lists the actors before the first record', async () => {
  const program = new Program({ capacity: 2 });
  program.ring.write({ seq: 1, t: 0, kind: 'spawn', actor: 'agent' });
  for (let seq = 2; seq < 9; seq++) program.ring.write({ seq, t: 0, kind: 'effect', actor: 'agent', effect: 'e' });
  const server = createServer((_, response) => program.stream.attach(response, { follow: false })).listen(0);
  onTestFinished(() => void server.close());
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  const [first, ...records] = (await response.text()).trim().split('\n');
  expect(JSON.parse(first!)).toMatchObject({ kind: 'header', actors: [{ actor: 'agent', spawned: 1 }] });
  expect(records).toHaveLength(2);
});

test('viewers of a trace receive the remaining records and a proper end when the program ends', async () => {
  const program = await Program.start({ endLimitMs: 60_000 });
  program.record(2_000);
  const views = [await program.view(), await program.view()];
  program.record(3_000);
  await program.stream.end();
  for (const view of views) {
    await view.ended();
    expect([view.over, view.numbers]).toEqual(['end', upTo(5_000)]);
  }
  expect(program.stream.hasFreeSlot).toBe(false);
});

test('the ring has no listener while there is no viewer', async () => {
  const program = await Program.start();
  const onListenerStop = vi.fn();
  const listenOriginal = program.ring.listen.bind(program.ring);
  const listen = vi.spyOn(program.ring, 'listen').mockImplementation((listener) => {
    const stop = listenOriginal(listener);
    return () => {
      onListenerStop();
      stop();
    };
  });
  program.record();
  expect(listen).not.toHaveBeenCalled();
  const first = await program.view();
  const secondView = await program.view();
  await secondView.has(2);
  expect(listen).toHaveBeenCalledTimes(1);
  first.response.destroy();
  secondView.response.destroy();
  await eventually('both are gone', () => program.responses.every((response) => response.destroyed));
  expect(onListenerStop).toHaveBeenCalledTimes(1);
  program.record(10);
  await (await program.view()).has(12);
  expect(listen).toHaveBeenCalledTimes(2);
});

test('the trace stream writes records of one event loop iteration together', async () => {
  const program = await Program.start();
  const view = await program.view();
  await view.has(1);
  const write = vi.spyOn(program.responses[0]!, 'write');
  program.record(50);
  await view.has(51);
  expect(write).toHaveBeenCalledTimes(1);
});

test('the trace stream writes a large trace in batches, and yields to the event loop in between', async () => {
  const program = await Program.start({ textLength: 2_000 });
  const sizes: number[] = [];
  const view = await program.view();
  await view.has(1);
  const response = program.responses[0]!;
  const write = response.write.bind(response);
  vi.spyOn(response, 'write').mockImplementation(((text: string) => {
    sizes.push(text.length);
    return write(text);
  }) as never);
  let turnCount = 0;
  let counting = true;
  const count = (): void => {
    turnCount++;
    if (counting) setImmediate(count);
  };
  count();
  program.record(5_000);
  await view.has(5_001);
  counting = false;
  // The records take 10 MB.
  expect(sizes.length).toBeGreaterThan(30);
  expect(Math.max(...sizes)).toBeLessThan(256 * 1024 + 3_000);
  expect(turnCount).toBeGreaterThan(sizes.length);
});

test('a viewer of a trace that disconnects frees its slot', async () => {
  const program = await Program.start({ maxViewers: 2 });
  const views = [await program.view(), await program.view()];
  expect(program.stream.hasFreeSlot).toBe(false);
  views[0]!.response.destroy();
  await eventually('there is room', () => program.stream.hasFreeSlot);
});

test('a viewer of a trace that never reads uses memory for one batch, and is disconnected when the record at its position is dropped', async () => {
  const program = await Program.start({ capacity: 2_000, textLength: 2_000 });
  const socket = await program.stuck();
  let buffered = 0;
  let records = 0;
  while (!program.responses[0]!.destroyed && records < 100_000) {
    program.record(100);
    records += 100;
    buffered = Math.max(buffered, program.responses[0]!.writableLength);
    await new Promise(setImmediate);
  }
  expect(program.responses[0]!.destroyed).toBe(true);
  // The kernel buffers data for the viewer, and the ring keeps records, but not all that were recorded in that time.
  expect(buffered).toBeLessThan(600 * 1024);
  expect(records).toBeLessThan(20_000);
  await eventually('its place is free', () => program.stream.hasFreeSlot);
  socket.destroy();
});

test('a viewer of a trace can distinguish being disconnected from the end of the trace', async () => {
  const program = await Program.start({ capacity: 500, textLength: 2_000 });
  const view = await program.view();
  await view.has(1);
  view.response.pause();
  for (let turn = 0; turn < 2_000 && !program.responses[0]!.destroyed; turn++) {
    program.record(50);
    await new Promise(setImmediate);
  }
  view.response.resume();
  await view.ended();
  expect(view.over).toBe('broken off');
});

test('the end of the program does not wait for a viewer of the trace that does not read', async () => {
  const program = await Program.start({ endLimitMs: 100, textLength: 2_000 });
  const socket = await program.stuck();
  const view = await program.view();
  program.record(15_000);
  await sleep(100);
  expect(await msWithoutQueueing([process.pid], () => program.stream.end())).toBeLessThan(400);
  await eventually('it is cut off', () => program.responses[0]!.destroyed);
  expect(view.numbers.length).toBeGreaterThan(1);
  socket.destroy();
});

test('a viewer of a trace that does not read loses its slot to one that reads', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const program = await Program.start({ maxViewers: 1, unreadLimitMs: 600, textLength: 2_000 });
  const socket = await program.stuck();
  program.record(15_000);
  expect(program.stream.hasFreeSlot).toBe(false);
  await eventually('there is room', () => {
    vi.advanceTimersByTime(600);
    return program.stream.hasFreeSlot;
  });
  const reader = await program.view();
  await reader.has(15_001);
  await eventually('the last write is over', () => !program.responses[1]!.writableNeedDrain);
  // A viewer that has read everything may wait for the next record without limit.
  vi.advanceTimersByTime(60_000);
  program.record();
  await reader.has(15_002);
  expect(reader.numbers.at(-1)).toBe(15_001);
  socket.destroy();
});

test('a trace record that cannot be serialized disconnects current viewers and uses no slot', async () => {
  const caughtErrors = uncaughtErrors();
  const program = await Program.start({ maxViewers: 1 });
  program.record();
  const view = await program.view();
  await view.has(2);
  const endless: { itself?: unknown } = {};
  endless.itself = endless;
  program.ring.write({ seq: 2, t: 2, kind: 'log', actor: 'a', level: 'info', text: endless as never });
  await view.ended();
  expect(view.over).toBe('broken off');
  await eventually('there is room for another', () => program.stream.hasFreeSlot);
  expect(String(caughtErrors[0]?.error)).toContain('circular');
});
