/**
 * From each version of the trace format to the next: a trace outlives the program that wrote it. A stored trace of each version
 * is read by a test. Runs in a browser.
 */
import { traceVersion } from '../../runtime/trace/trace.ts';
import { timelinesOfVersion2 } from './timelines-of-version-2.ts';

/** A line as JSON has it; what is wrong in it is found after the last step. */
export type RawLine = Record<string, unknown>;
export type VersionStep = (line: RawLine) => RawLine;

/** `steps[0]` leads from version 1 to version 2. */
const steps: readonly VersionStep[] = [
  (line) => {
    if (line.kind === 'header') return { ...line, version: 2, level: 'standard', machines: [] };
    // What was called so was the type of the event; the number of what led to it was not recorded.
    const { cause: on, ...rest } = line;
    return line.kind === 'transition' ? { ...rest, on } : line;
  },
  (line) => {
    if (line.kind !== 'header') return line;
    const { machines } = line;
    return { ...line, version: 3, ...(Array.isArray(machines) && { machines: machines.map(withTimeline) }) };
  },
];

/** What leads from a version to this one; undefined where nothing does: it is newer, or none at all. */
export function stepsFrom(version: number): readonly VersionStep[] | undefined {
  if (!Number.isInteger(version) || version < 1 || version > traceVersion) return undefined;
  return steps.slice(version - 1);
}

/** Then lanes were known by the names of machines. */
function withTimeline(machine: unknown): unknown {
  const { id } = (machine ?? {}) as { id?: unknown };
  const timeline = typeof id === 'string' ? timelinesOfVersion2.get(id) : undefined;
  return timeline === undefined ? machine : { ...(machine as object), timeline };
}
