/** The commands of docs/consul.md as a user enters them, in a network namespace with the ports named on the page. */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { packageRoot } from '../../src/runtime/package-root.ts';
import { temporaryFolder } from '../fixtures/real-envoy.ts';
import { requireIptables } from '../harness/iptables.ts';
import { endNamespaces, NetworkSide } from '../harness/pod-network.ts';
import { consul, findOrBuild } from './go-program.ts';

const page = readFileSync(join(packageRoot(), 'docs/consul.md'), 'utf8');

/** The commands of a block of the page. */
function block(name: string): string {
  const text = new RegExp(`^ *\`\`\`sh ${name}\n(.*?)^ *\`\`\``, 'ms').exec(page)?.[1];
  if (text === undefined) throw new Error(`docs/consul.md has no block ${name}`);
  return text
    .replaceAll(/^ {2}(?=bin\/pilot-discovery request)/gm, '')
    .replaceAll(/(?<=^\s*)bin\//gm, `${packageRoot()}/bin/`);
}

/** A shell runs the blocks one after the other, each after the previous one has started its programs. */
const session = `
set -e
trap 'kill $(jobs -p); wait' EXIT

until_true() {
  for _ in $(seq 150); do if eval "$1"; then return 0; fi; sleep 0.2; done
  echo "never true: $1"; tail -n 5 consul-mesh/*.log; exit 1
}
request() { eval "$REQUEST" 2>/dev/null; }
different() { printf '%s\\n' $(for _ in 1 2 3 4 5 6; do request; done) | sort -u | tr '\\n' ' '; }
ready='curl -sf 127.0.0.1:8080/ready >/dev/null'
${block('start')}
until_true "$ready"
${block('services')}
until_true 'curl -s 127.0.0.1:8080/debug/endpointz | grep -q 127.0.1.2'
printf 'endpoints: '
${block('endpoints')}
echo
${block('client')}
REQUEST='${block('request').trim().replaceAll("'", String.raw`'\''`)}'
until_true 'backends=$(different); [ "$backends" = "v1 v2 " ]'
echo "before: $backends"
${block('weights')}
until_true 'backends=$(different); [ "$backends" = "v2 " ]'
echo "after: $backends"
for n in 1 2; do curl -s -X PUT 127.0.0.1:8500/v1/agent/service/deregister/web-$n; done
until_true 'curl -s 127.0.0.1:8080/ready | grep -q "held back"'
${block('accept')}
until_true '[ "$(curl -s 127.0.0.1:8080/debug/endpointz)" = "{}" ]'
echo "all removed"
`;

test('the commands of docs/consul.md start a mesh, send requests by weight, and confirm the removal of all services', async () => {
  requireIptables();
  const binary = await findOrBuild(consul, (line) => console.error(line));
  const folder = temporaryFolder();
  const children: ChildProcess[] = [];
  onTestFinished(async () => {
    await endNamespaces(children);
    folder[Symbol.dispose]();
  });
  const side = await NetworkSide.make(children);
  const env = { PATH: `${dirname(binary)}:${process.env.PATH}` };
  const { exitCode, stdout, stderr } = await side.run(['env', '-C', folder.path, 'bash', '-c', session], { env });
  expect(stdout, stderr).toMatch(/^endpoints: \{"web\.service\.consul":.*"127\.0\.1\.1".*"127\.0\.1\.2"/m);
  expect(stdout.split('\n').filter((line) => /^(before|after|all removed|never)/.test(line))).toEqual([
    'before: v1 v2 ',
    'after: v2 ',
    'all removed',
  ]);
  expect(exitCode).toBe(0);
});
