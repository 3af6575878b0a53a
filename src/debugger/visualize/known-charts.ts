/** The charts of this package's machines, drawn at build time, because a layout takes seconds. */
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageRoot } from '../../runtime/package-root.ts';
import type { Statechart } from '../../runtime/trace/statechart.ts';
import type { BriefChart } from '../statechart/brief-charts.ts';

export interface MachinePictures {
  readonly whole: string;
  readonly brief: readonly BriefChart[];
}

/** By {@link chartKey}. */
export type KnownCharts = Readonly<Record<string, MachinePictures>>;

export const prebuiltChartsFile = 'dist/visualize/charts.json';

/** Machines with the same key have equal charts. */
export function chartKey({ id, states, transitions }: Statechart): string {
  return createHash('sha256').update(JSON.stringify({ id, states, transitions })).digest('base64url');
}

/** Without a build, each chart is drawn on request. */
export function readKnownCharts(file = join(packageRoot(), prebuiltChartsFile)): KnownCharts {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as KnownCharts) : {};
}
