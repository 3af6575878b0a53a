/** Helm, and the objects that it renders from `deploy/chart`. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll } from 'vitest';
import { parseAllDocuments } from 'yaml';
import type { KubernetesObject } from '../../src/discovery/kubernetes/api-server.ts';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { findOrBuild, helm } from './go-program.ts';

export interface Helm {
  /**
   * Runs Helm in the root of the repository.
   * @returns standard output; rejects with standard error
   */
  run(...args: string[]): Promise<string>;
  /** Objects of the chart for the release `mesh`. */
  render(namespace: string, ...values: string[]): Promise<KubernetesObject[]>;
}

/** Provides Helm. Call it at the top level of a file. Helm is built before the first test unless cached. */
export function givenHelm(): Helm {
  const home = mkdtempSync(join(tmpdir(), 'cp-helm-'));
  let binary: string;
  beforeAll(async () => {
    binary = await findOrBuild(helm, (line) => console.error(line));
  }, 1_800_000);
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  const run = async (...args: string[]): Promise<string> => {
    const env = { PATH: process.env.PATH, HOME: home };
    return (await promisify(execFile)(binary, args, { cwd: packageRoot(), env })).stdout;
  };
  const rendered = async (namespace: string, ...values: string[]): Promise<KubernetesObject[]> =>
    objectsIn(await run('template', 'mesh', 'deploy/chart', '--namespace', namespace, ...values));
  return { run, render: rendered };
}

export function objectsIn(yaml: string): KubernetesObject[] {
  return parseAllDocuments(yaml).flatMap((document) => (document.toJS() as KubernetesObject | null) ?? []);
}
