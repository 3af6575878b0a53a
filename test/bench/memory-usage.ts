import { readFileSync } from 'node:fs';

export interface ProcessMemory {
  readonly rssMib: number;
  readonly peakMib: number;
}

/** Resident memory of a process, as the kernel reports it. */
export function memoryOf(pid: number): ProcessMemory {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mib = (field: string): number => Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024;
  return { rssMib: mib('VmRSS'), peakMib: mib('VmHWM') };
}
