import { ChartpilotError } from '../../runtime/errors.ts';
import { formatTraceLine, type TraceHeader, type TraceRecord } from '../../runtime/trace/trace.ts';
import { matchName, type NamePattern, namePattern } from '../diagram/name-pattern.ts';
import { causeChain } from './cause-chain.ts';
import { formatCauses, formatRecord, type PrintOptions } from './print-trace.ts';
import { incompleteLineWarnings, openTrace, readRecords } from './read-trace.ts';

export interface TraceCommandOptions {
  /** Only records of these actors and of the effects below them; `epoch-N` is any epoch. */
  readonly actor?: readonly string[];
  readonly kind?: readonly TraceRecord['kind'][];
  /** Numbers of the first and the last record. */
  readonly from?: number;
  readonly to?: number;
  /** Prints the causes of this record instead of all records. */
  readonly why?: number;
  readonly clock?: boolean;
  readonly format: 'text' | 'json';
}

export interface TraceOutput {
  /** Resolves when more can be written: a trace may be larger than the memory, and its reader slow. */
  out: (text: string) => void | Promise<void>;
  error: (text: string) => void;
}

/** @throws ChartpilotError FILE_UNREADABLE, TRACE_INVALID, or FLAG_INVALID (no such actor or record) */
export async function printTrace(
  path: string,
  options: TraceCommandOptions,
  { out, error }: TraceOutput,
): Promise<void> {
  const actors = options.actor?.map(patternOf);
  const openedTrace = await openTrace(path);
  if (options.why !== undefined) {
    await out(await causesText(path, options.why, openedTrace, options));
    return;
  }
  const print = printOptions(openedTrace.header, options);
  const { from = 0, to = Number.POSITIVE_INFINITY } = options;
  if (from > to)
    throw new ChartpilotError('FLAG_INVALID', `--from ${from} is greater than --to ${to}`, {
      fields: { path: '--from', expected: `at most ${to}`, got: String(from) },
    });
  const kinds = options.kind === undefined ? undefined : new Set<string>(options.kind);
  let printedCount = 0;
  for await (const record of openedTrace.records) {
    if (record.seq < from) continue;
    if (record.seq > to) break;
    if (kinds?.has(record.kind) === false) continue;
    if (actors !== undefined && !namesOf(record).some((name) => matchesAnyPattern(actors, name))) continue;
    printedCount++;
    await out(options.format === 'json' ? formatTraceLine(record) : `${formatRecord(record, print)}\n`);
  }
  if (printedCount === 0) error(`${path}: no matching records\n`);
  for (const line of incompleteLineWarnings(openedTrace)) error(`${line}\n`);
}

async function causesText(
  path: string,
  seq: number,
  { header, records }: { header: TraceHeader; records: AsyncIterable<TraceRecord> },
  options: TraceCommandOptions,
): Promise<string> {
  const recordList = await readRecords(records, seq);
  const index = recordList.indexOf(seq);
  if (index === undefined) {
    const [firstRecord, lastRecord] = [recordList.recordAt(0), recordList.recordAt(recordList.length - 1)];
    const hasMatch =
      firstRecord === undefined
        ? 'has none'
        : lastRecord!.seq > seq
          ? `starts with ${firstRecord.seq}`
          : `has ${firstRecord.seq} to ${lastRecord!.seq}`;
    throw new ChartpilotError('FLAG_INVALID', `--why ${seq}: no such record; ${path} ${hasMatch}`, {
      fields: { path: '--why', got: String(seq) },
    });
  }
  const record = recordList.recordAt(index)!;
  const chain = causeChain(recordList, index);
  if (options.format === 'text') {
    return `${formatCauses(record, chain, printOptions(header, options)).join('\n')}\n`;
  }
  const links = chain.links.map(({ how, record: cause }) => ({ how, record: cause }));
  return `${JSON.stringify({ record, causes: links, origin: chain.origin }, undefined, 2)}\n`;
}

function printOptions({ startedAt }: TraceHeader, { clock = false }: TraceCommandOptions): PrintOptions {
  return clock ? { startedAt } : {};
}

function patternOf(name: string): NamePattern {
  const pattern = namePattern(name);
  if (pattern !== undefined) return pattern;
  throw new ChartpilotError('FLAG_INVALID', `--actor: must be the name of an actor, got ${name}`, {
    hint: 'examples: epoch-1, epoch-1/process, epoch-N for any epoch',
    fields: { path: '--actor', expected: 'the name of an actor', got: name },
  });
}

function namesOf(record: TraceRecord): string[] {
  if (record.kind === 'event') return [record.from, record.to];
  return record.kind === 'spawn' && record.parent !== undefined ? [record.actor, record.parent] : [record.actor];
}

function matchesAnyPattern(patterns: readonly NamePattern[], actor: string): boolean {
  const path = actor.split('/');
  return path.some((_, i) =>
    patterns.some((pattern) => matchName(pattern, path.slice(0, i + 1).join('/')) !== undefined),
  );
}
