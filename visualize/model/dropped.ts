/** Traces that a person gives to the page: dropped on it, or chosen as files. They stay in this browser. */
import { batch } from '@preact/signals';
import { messageOf } from '../../src/runtime/errors.ts';
import { notice, sources } from './connection.ts';
import { TraceProblem, TraceStream } from './incoming-trace.ts';
import { openSource } from './load.ts';
import { jumps } from './place.ts';
import { addFile } from './source-data.ts';

/** A header that is not over by then is none: a machine's definition takes 30 KB. */
const mostHeaderChars = 32 * 1024 * 1024;

/** Opens the first that is a trace; the others stand in the list of sources. Of those that are none it is said why. */
export async function openFiles(files: readonly File[]): Promise<void> {
  const problems: string[] = [];
  const good: File[] = [];
  for (const file of files) {
    const why = await whyNoTrace(file);
    if (why === undefined) good.push(file);
    else problems.push(`${file.name} cannot be opened: ${why}.`);
  }
  const first = sources.value.length;
  batch(() => {
    for (const file of good) {
      const name = freeName(file.name);
      addFile(sources.value.length, file);
      sources.value = [...sources.value, { name, kind: 'file', place: file.name }];
    }
  });
  if (good.length > 0) {
    jumps.value++;
    const opening = openSource(first);
    if (problems.length > 0) notice.value = problems.join(' ');
    await opening;
  } else if (problems.length > 0) notice.value = problems.join(' ');
}

/** Before anything that is open is left. */
async function whyNoTrace(file: File): Promise<string | undefined> {
  try {
    if (file.size === 0) return 'it is empty, or a folder';
    const known = knownForm(new Uint8Array(await file.slice(0, 512).arrayBuffer()));
    if (known !== undefined) return known;
    return await whyNoHeader(file);
  } catch (error) {
    // A folder is given as a file that cannot be read.
    return error instanceof TraceProblem ? error.message : `the browser does not read it (${messageOf(error)})`;
  }
}

async function whyNoHeader(file: File): Promise<string | undefined> {
  const stream = new TraceStream();
  const reader = file.stream().pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let chars = 0; chars < mostHeaderChars; ) {
      const { done, value = '' } = await reader.read();
      chars += value.length;
      stream.push(value);
      stream.read(() => false);
      if (stream.header !== undefined) return undefined;
      if (done) return 'there is no header: it is no trace of chartpilot';
    }
    return 'its first line is no header';
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/** What people have beside their traces, by its first bytes. */
function knownForm(bytes: Uint8Array): string | undefined {
  const text = new TextDecoder('latin1').decode(bytes).trimStart().toLowerCase();
  if (bytes[0] === 0x1f && bytes[1] === 0x8b) return 'it is compressed; unpack it with gunzip first';
  if (text.startsWith('pk\x03\x04')) return 'it is a zip file; unpack it first';
  if (text.startsWith('<!doctype html') || text.startsWith('<html')) {
    return 'it is a page; if chartpilot made it, open it in the browser as it is';
  }
  return undefined;
}

function freeName(name: string): string {
  const taken = new Set(sources.value.map((source) => source.name));
  let free = name;
  for (let n = 2; taken.has(free); n++) free = `${name} (${n})`;
  return free;
}
