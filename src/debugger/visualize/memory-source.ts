import { Readable } from 'node:stream';
import { ChartpilotError } from '../../runtime/errors.ts';
import { TraceLineReader } from '../trace/trace-line.ts';
import type { PageSource } from './page-source.ts';

export function memorySource(name: string, trace: string): PageSource {
  return {
    name,
    kind: 'file',
    place: name,
    header: async () => {
      const line = new TraceLineReader().read(trace.slice(0, trace.indexOf('\n')));
      if (typeof line !== 'string' && line.kind === 'header') return line;
      throw new ChartpilotError('TRACE_INVALID', `${name}:1: expected a trace header in the first line`);
    },
    read: async () => Readable.from([trace], { objectMode: false }),
  };
}
