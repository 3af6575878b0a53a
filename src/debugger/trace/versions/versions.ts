import { traceVersion } from '../../../runtime/trace/trace.ts';
import type { VersionStep } from '../raw-line.ts';
import { convertNames } from './converted-names.ts';
import { timelinesOfVersion2 } from './timelines-of-version-2.ts';

/** `steps[0]` converts version 1 to version 2. A step is created for each trace, because it may store the actors. */
const steps: readonly (() => VersionStep)[] = [
  () => (line) => {
    if (line.kind === 'header') return { ...line, version: 2, level: 'standard', machines: [] };
    // In version 1, `cause` was the type of the event; the number of the cause was not recorded.
    const { cause, ...otherFields } = line;
    return line.kind === 'transition' ? { ...otherFields, on: cause } : line;
  },
  () => (line) => {
    if (line.kind !== 'header') return line;
    const { machines } = line;
    return { ...line, version: 3, ...(Array.isArray(machines) && { machines: machines.map(withTimeline) }) };
  },
  convertNames,
];

/** @returns `undefined` if the version is newer or invalid */
export function stepsFrom(version: number): readonly VersionStep[] | undefined {
  if (!Number.isInteger(version) || version < 1 || version > traceVersion) return undefined;
  return steps.slice(version - 1).map((step) => step());
}

/** In version 2, lanes were derived from the names of machines. */
function withTimeline(machine: unknown): unknown {
  const { id } = (machine ?? {}) as { id?: unknown };
  const timeline = typeof id === 'string' ? timelinesOfVersion2.get(id) : undefined;
  return timeline === undefined ? machine : { ...(machine as object), timeline };
}
