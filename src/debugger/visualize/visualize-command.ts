import { createWriteStream, statSync } from 'node:fs';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { ChartpilotError, messageOf } from '../../runtime/errors.ts';
import type { CommandOutput } from '../command-output.ts';
import { loadDiagrams } from '../diagram/load.ts';
import { formatMerged, merge } from '../merge/merge-command.ts';
import { mergedName } from '../page-data.ts';
import { standardInput, traceFilesOf } from '../trace/read-trace.ts';
import { ownerOnlyMode, requireDifferentFile } from '../write-output.ts';
import { fileSource } from './file-source.ts';
import { formatLiveAddress, parseLiveAddress } from './live-address.ts';
import { liveSource } from './live-source.ts';
import { memorySource } from './memory-source.ts';
import type { PageSource } from './page-source.ts';
import { type ServePageOptions, servePage } from './serve-page.ts';
import { singleFile } from './single-file.ts';

export interface VisualizeCommandOptions extends Pick<ServePageOptions, 'port' | 'open' | 'diagrams' | 'enough'> {
  readonly attach?: readonly string[];
  /** One token for all programs, or one for each address (default: `$CHARTPILOT_TOKEN`, then each program's run directory). */
  readonly token?: readonly string[];
  readonly runDir?: string;
  /** Writes a page that needs no server, and exits. */
  readonly output?: string;
}

/**
 * Returns when the user ends the server, or the page is written.
 *
 * @throws ChartpilotError if a trace is unavailable, the port is in use, or a flag is invalid
 */
export async function visualize(
  files: readonly string[],
  options: VisualizeCommandOptions,
  output: CommandOutput,
): Promise<void> {
  const sources = await sourcesOf(files, options);
  const { port, open, diagrams, enough } = options;
  // Validated early, because the page would show its trace without the invalid diagrams.
  if (diagrams !== undefined) loadDiagrams(diagrams);
  const commonOptions = { sources, ...(diagrams !== undefined && { diagrams }) };
  if (options.output !== undefined) {
    requireDifferentFile('--output', options.output, files.flatMap(traceFilesOf));
    await writePage(options.output, singleFile(commonOptions));
    output.error(`wrote ${options.output}, which opens in a browser without server or network\n`);
    return;
  }
  const serveOptions = { ...commonOptions, ...(port !== undefined && { port }), ...(open !== undefined && { open }) };
  await servePage({ ...serveOptions, ...(enough !== undefined && { enough }) }, output);
}

async function sourcesOf(files: readonly string[], options: VisualizeCommandOptions): Promise<PageSource[]> {
  const { attach = [], runDir } = options;
  const tokens = tokensOf(options);
  if (files.length + attach.length === 0) {
    throw new ChartpilotError('FLAG_INVALID', 'expected a trace file or --attach', {
      hint: 'example: chartpilot visualize agent.trace, or chartpilot visualize --attach 15020',
    });
  }
  const liveSources = attach.map(parseLiveAddress).map(async (address, index) => {
    const token = tokens.length === 1 ? tokens[0] : tokens[index];
    const access = { ...(token && { token }), ...(runDir !== undefined && { runDir }) };
    const { program } = await liveSource(address, access).header();
    return liveSource(address, { ...access, name: `${program} ${formatLiveAddress(address)}` });
  });
  const sources = await Promise.all(files.map(traceSource));
  // Reports invalid and missing traces before a browser opens.
  await Promise.all(sources.map((source) => source.header()));
  return [...sources, ...(await mergedSource(files)), ...(await Promise.all(liveSources))];
}

function tokensOf({
  attach = [],
  token = [process.env.CHARTPILOT_TOKEN ?? ''],
}: VisualizeCommandOptions): readonly string[] {
  if (token.length === 1 || token.length === attach.length) return token;
  throw new ChartpilotError(
    'FLAG_INVALID',
    `--token: expected one, or one for each of ${attach.length} --attach, got ${token.length}`,
    {
      fields: { path: '--token', got: String(token.length) },
    },
  );
}

/** The merged trace is an additional source, because most users need a separate trace. */
async function mergedSource(files: readonly string[]): Promise<PageSource[]> {
  const smallFiles = files.length > 1 && !files.includes(standardInput) && sizeOf(files) <= maxMergedBytes;
  if (!smallFiles) return [];
  try {
    const mergedTrace = await merge(files);
    return mergedTrace.arrows === 0 ? [] : [memorySource(mergedName, formatMerged(mergedTrace))];
  } catch {
    // Opening the invalid trace separately reports the error.
    return [];
  }
}

/** Memory contains the merged trace three times. */
const maxMergedBytes = 64 * 1024 * 1024;

function sizeOf(files: readonly string[]): number {
  return files.reduce((sum, file) => sum + statSync(file).size, 0);
}

async function traceSource(file: string): Promise<PageSource> {
  return file === standardInput ? memorySource('standard input', await text(process.stdin)) : fileSource(file);
}

async function writePage(path: string, text: AsyncGenerator<string>): Promise<void> {
  try {
    await pipeline(Readable.from(text), createWriteStream(path, { mode: ownerOnlyMode }));
  } catch (error) {
    if (error instanceof ChartpilotError) throw error;
    throw new ChartpilotError('FLAG_INVALID', `--output: cannot write ${path}: ${messageOf(error)}`, {
      fields: { path: '--output', got: path },
      hint: 'choose another file with --output',
      cause: error,
    });
  }
}
