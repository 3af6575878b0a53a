/** Traces that the user opens stay in the browser. */
import { batch } from '@preact/signals';
import { labelsOf } from '../../src/debugger/merge/labels.ts';
import { mergeTraces, type ProgramTrace } from '../../src/debugger/merge/merge-traces.ts';
import { mergedName } from '../../src/debugger/page-data.ts';
import { messageOf } from '../../src/runtime/errors.ts';
import { formatTraceLine, isSameRun, type TraceRecord } from '../../src/runtime/trace/trace.ts';
import { connectionNotice, sources } from './connection.ts';
import { openSource } from './load.ts';
import { jumpCount } from './place.ts';
import { InvalidTraceLine, TraceParser } from './recording/incoming-trace.ts';
import { addFile } from './source-data.ts';
import { yieldToBrowser } from './time/frames.ts';

/** The definition of one machine in the header takes 30 KB. */
const maxHeaderChars = 32 * 1024 * 1024;

export async function openFiles(files: readonly File[]): Promise<void> {
  const problems: string[] = [];
  const validFiles: File[] = [];
  for (const file of files) {
    const errorText = await traceErrorOf(file);
    if (errorText === undefined) validFiles.push(file);
    else problems.push(`${file.name} cannot be opened: ${errorText}.`);
  }
  const firstIndex = sources.value.length;
  batch(() => {
    for (const file of validFiles) {
      addSource(unusedName(file.name), file.name, file);
    }
  });
  if (validFiles.length > 0) {
    jumpCount.value++;
    const opening = openSource(firstIndex);
    if (problems.length > 0) connectionNotice.value = problems.join(' ');
    await opening;
    const mergedTrace = await mergedTraceOf(validFiles);
    if (mergedTrace !== undefined)
      addSource(unusedName(mergedName), validFiles.map(({ name }) => name).join(', '), mergedTrace);
  } else if (problems.length > 0) connectionNotice.value = problems.join(' ');
}

function addSource(name: string, location: string, file: Blob): void {
  addFile(sources.value.length, name, file);
  sources.value = [...sources.value, { name, kind: 'file', place: location }];
}

const sliceMs = 25;
/** Merging needs three times this size in memory. */
const maxMergedBytes = 64 * 1024 * 1024;

/** `undefined` without messages between the programs. */
async function mergedTraceOf(files: readonly File[]): Promise<Blob | undefined> {
  if (files.length < 2 || files.reduce((sum, { size }) => sum + size, 0) > maxMergedBytes) return undefined;
  try {
    const labels = labelsOf(files.map(({ name }) => name));
    const programs: ProgramTrace[] = [];
    for (const [i, file] of files.entries()) {
      const stream = new TraceParser();
      stream.push(await file.text());
      const records: TraceRecord[] = [];
      for (;;) {
        const deadline = performance.now() + sliceMs;
        const parsedRecords = stream.read(() => performance.now() < deadline);
        if (parsedRecords.records.length === 0) break;
        for (const record of parsedRecords.records) records.push(record);
        await yieldToBrowser();
      }
      records.push(...stream.end().records);
      const header = stream.header!;
      // Files of the same run cannot be merged, and a merged trace cannot be merged again.
      if (header.programs !== undefined || programs.some((program) => isSameRun(program.header, header)))
        return undefined;
      programs.push({ label: labels[i]!, header, records });
    }
    const { header, records, arrows } = mergeTraces(programs);
    return arrows === 0 ? undefined : new Blob([header, ...records].map(formatTraceLine));
  } catch {
    // Opening the invalid trace separately shows its valid records and the error.
    return undefined;
  }
}

/** Called before the open trace is closed. */
async function traceErrorOf(file: File): Promise<string | undefined> {
  try {
    if (file.size === 0) return 'it is empty, or a directory';
    const fileType = recognizedFileType(new Uint8Array(await file.slice(0, 512).arrayBuffer()));
    if (fileType !== undefined) return fileType;
    return await headerErrorOf(file);
  } catch (error) {
    // Browsers pass a folder as an unreadable file.
    return error instanceof InvalidTraceLine ? error.message : `the browser cannot read it (${messageOf(error)})`;
  }
}

async function headerErrorOf(file: File): Promise<string | undefined> {
  const stream = new TraceParser();
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let chars = 0; chars < maxHeaderChars; ) {
      const { done, value = '' } = await reader.read();
      chars += value.length;
      stream.push(value);
      stream.read(() => false);
      if (stream.header !== undefined) return undefined;
      if (done) return 'missing header; it is not a trace of chartpilot';
    }
    return 'its first line is not a trace header';
  } finally {
    void reader.cancel().catch(() => {});
  }
}

function recognizedFileType(bytes: Uint8Array): string | undefined {
  const text = new TextDecoder('latin1').decode(bytes).trimStart().toLowerCase();
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return 'it is compressed; decompress it with gunzip first';
  if (text.startsWith('pk\x03\x04')) return 'it is a zip file; unpack it first';
  if (text.startsWith('<!doctype html') || text.startsWith('<html')) {
    return 'it is an HTML page; if chartpilot wrote it, open it in the browser';
  }
  return undefined;
}

function unusedName(name: string): string {
  const takenNames = new Set(sources.value.map((source) => source.name));
  let freeName = name;
  for (let n = 2; takenNames.has(freeName); n++) freeName = `${name} (${n})`;
  return freeName;
}
