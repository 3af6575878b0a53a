/**
 * The pictures of this package's own machines, drawn when it is built: a layout takes seconds, and a person who opens a
 * trace does not wait for what is always the same.
 */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../runtime/package-root.ts';
import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { BriefChart } from '../statechart/brief-charts.ts';

/** The pictures of a machine. */
export interface MachinePictures {
  /** SVG text. */
  readonly whole: string;
  readonly brief: readonly BriefChart[];
}

/** By {@link chartKey}. */
export type KnownCharts = Readonly<Record<string, MachinePictures>>;

/** Below the package's folder. */
export const knownChartsFile = 'dist/visualize/charts.json';

/** Two machines have the same key when their pictures are the same. */
export function chartKey({ id, states, transitions }: Statechart): string {
  return createHash('sha256').update(JSON.stringify({ id, states, transitions })).digest('base64url');
}

/** What the build has drawn; nothing when it has not: then each picture is drawn when it is asked for. */
export function readKnownCharts(file = join(packageRoot(), knownChartsFile)): KnownCharts {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as KnownCharts) : {};
}
