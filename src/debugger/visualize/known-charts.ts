/** The charts of this package's machines, drawn at build time: a layout takes seconds, and these charts never change. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../runtime/package-root.ts';
import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { BriefChart } from '../statechart/brief-charts.ts';

/** The charts of a machine. */
export interface MachinePictures {
  /** SVG text. */
  readonly whole: string;
  readonly brief: readonly BriefChart[];
}

/** By {@link chartKey}. */
export type KnownCharts = Readonly<Record<string, MachinePictures>>;

/** Relative to the folder of the package. */
export const knownChartsFile = 'dist/visualize/charts.json';

/** Two machines have the same key if their charts are equal. */
export function chartKey({ id, states, transitions }: Statechart): string {
  return createHash('sha256').update(JSON.stringify({ id, states, transitions })).digest('base64url');
}

/** The charts of the build; empty without a build: then each chart is drawn on request. */
export function readKnownCharts(file = join(packageRoot(), knownChartsFile)): KnownCharts {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as KnownCharts) : {};
}
