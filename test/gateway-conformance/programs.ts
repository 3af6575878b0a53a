/** Builds programs of the run from Go modules, and reads the CRDs of the Gateway API. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { findOrBuild, type GoProgram } from '../cluster/go-program.ts';
import type { KubeObject } from './cluster-api.ts';

const folder = 'test/gateway-conformance/suite';
const flags = ['-trimpath', '-buildvcs=false', '-mod=readonly', '-ldflags', '-s -w'];

const suite: GoProgram = {
  ...{ name: 'gateway-conformance', title: "the Gateway API's conformance suite", takes: 'two minutes' },
  ...{ folder, command: ['test', '-c'], package: '.', flags },
};

/** The backend of the suite's tests. */
const echo: GoProgram = {
  ...{ name: 'echo-basic', title: 'the backend of the conformance suite', takes: 'ten seconds' },
  ...{ folder, package: 'sigs.k8s.io/gateway-api/conformance/echo-basic', flags },
};

export async function conformancePrograms(report: (line: string) => void) {
  return { suite: await findOrBuild(suite, report), echo: await findOrBuild(echo, report) };
}

/** Reads the CRDs of the suite's version, including experimental kinds and fields. */
export function gatewayApiDefinitions(): KubeObject[] {
  const options = { cwd: join(packageRoot(), folder), encoding: 'utf8' } as const;
  const module = execFileSync(
    'go',
    ['list', '-mod=readonly', '-m', '-f', '{{.Dir}}', 'sigs.k8s.io/gateway-api'],
    options,
  );
  const crds = join(module.trim(), 'config/crd/experimental');
  return readdirSync(crds)
    .filter((name) => name.startsWith('gateway.networking.') && name.endsWith('.yaml'))
    .flatMap((name) => parseAllDocuments(readFileSync(join(crds, name), 'utf8')))
    .map((document) => document.toJS() as KubeObject)
    .filter((object) => object?.kind === 'CustomResourceDefinition');
}
