/** Tests `bin/heap-limit.sh`, which sets pilot-discovery's heap limit. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { packageRoot } from '../runtime/package-root.ts';

const gibibyte = 2 ** 30;

/** @param files of the cgroup mount, by path. @returns the flag; empty if none */
function flag(cgroups: string, files: Record<string, string>, env: NodeJS.ProcessEnv = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'cp-heap-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const write = (path: string, text: string): string => {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  };
  for (const [path, text] of Object.entries(files)) write(`mount/${path}`, text);
  const args = [
    write('cgroups', cgroups),
    join(folder, 'mount'),
    write('meminfo', 'MemTotal: 16777216 kB\nMemFree: 1 kB\n'),
  ];
  const script = `. "${packageRoot()}/bin/heap-limit.sh"; heap_limit "$@"; printf %s "$heap"`;
  return execFileSync('sh', ['-euc', script, 'sh', ...args], {
    env: { PATH: process.env.PATH, ...env },
    encoding: 'utf8',
  });
}

it('the heap has five eighths of the limit of the container, with cgroup v2 and v1', () => {
  expect(flag('0::/\n', { 'memory.max': `${gibibyte}\n` })).toBe('--max-old-space-size=640');
  expect(flag('4:memory:/\n0::/\n', { 'memory/memory.limit_in_bytes': `${gibibyte}\n` })).toBe(
    '--max-old-space-size=640',
  );
});

it('the smallest limit of the group and its parents applies, whether or not the path of the group is visible', () => {
  const nested = {
    'memory.max': 'max\n',
    'pods/memory.max': `${gibibyte}\n`,
    'pods/a/memory.max': `${2 * gibibyte}\n`,
  };
  expect(flag('0::/pods/a\n', nested)).toBe('--max-old-space-size=640');
  expect(flag('0::/host/path/of/it\n', { 'memory.max': `${gibibyte}\n` })).toBe('--max-old-space-size=640');
});

it('no limit, one above the memory of the machine, or a heap that NODE_OPTIONS limit gives no flag', () => {
  expect(flag('0::/\n', { 'memory.max': 'max\n' })).toBe('');
  expect(flag('4:memory:/\n', { 'memory/memory.limit_in_bytes': '9223372036854771712\n' })).toBe('');
  expect(flag('0::/\n', { 'memory.max': `${32 * gibibyte}\n` })).toBe('');
  expect(flag('', {})).toBe('');
  const limited = { 'memory.max': `${gibibyte}\n` };
  expect(flag('0::/\n', limited, { NODE_OPTIONS: '--max-old-space-size=300' })).toBe('');
  expect(flag('0::/\n', limited, { NODE_OPTIONS: '--max_old_space_size=300' })).toBe('');
});

it('a limit from the chart applies if no cgroup is visible; a small one leaves enough heap to start', () => {
  expect(flag('', {}, { CHARTPILOT_MEMORY_LIMIT_BYTES: `${gibibyte}` })).toBe('--max-old-space-size=640');
  expect(flag('0::/\n', { 'memory.max': `${50 * 2 ** 20}\n` })).toBe('--max-old-space-size=64');
});
