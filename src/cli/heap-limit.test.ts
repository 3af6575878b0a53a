import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { packageRoot } from '../runtime/package-root.ts';

const gibibyte = 2 ** 30;

/**
 * @param files of the cgroup mount, by path
 * @returns the flag; empty if none
 */
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

it("heap-limit.sh limits the heap to five eighths of the container's limit with cgroup v1 and v2", () => {
  expect(flag('0::/\n', { 'memory.max': `${gibibyte}\n` })).toBe('--max-old-space-size=640');
  expect(flag('4:memory:/\n0::/\n', { 'memory/memory.limit_in_bytes': `${gibibyte}\n` })).toBe(
    '--max-old-space-size=640',
  );
});

it('heap-limit.sh applies the smallest limit of the cgroup and its parents, even if the path of the cgroup is hidden', () => {
  const nestedLimits = {
    'memory.max': 'max\n',
    'pods/memory.max': `${gibibyte}\n`,
    'pods/a/memory.max': `${2 * gibibyte}\n`,
  };
  expect(flag('0::/pods/a\n', nestedLimits)).toBe('--max-old-space-size=640');
  expect(flag('0::/host/path/of/it\n', { 'memory.max': `${gibibyte}\n` })).toBe('--max-old-space-size=640');
});

it("heap-limit.sh prints no flag if there is no limit, if the limit exceeds the machine's memory, or if NODE_OPTIONS limits the heap", () => {
  expect(flag('0::/\n', { 'memory.max': 'max\n' })).toBe('');
  expect(flag('4:memory:/\n', { 'memory/memory.limit_in_bytes': '9223372036854771712\n' })).toBe('');
  expect(flag('0::/\n', { 'memory.max': `${32 * gibibyte}\n` })).toBe('');
  expect(flag('', {})).toBe('');
  const limitedGroup = { 'memory.max': `${gibibyte}\n` };
  expect(flag('0::/\n', limitedGroup, { NODE_OPTIONS: '--max-old-space-size=300' })).toBe('');
  expect(flag('0::/\n', limitedGroup, { NODE_OPTIONS: '--max_old_space_size=300' })).toBe('');
});

it('heap-limit.sh applies the limit of the Helm chart if no cgroup is visible, and leaves enough heap to start', () => {
  expect(flag('', {}, { CHARTPILOT_MEMORY_LIMIT_BYTES: `${gibibyte}` })).toBe('--max-old-space-size=640');
  expect(flag('0::/\n', { 'memory.max': `${50 * 2 ** 20}\n` })).toBe('--max-old-space-size=64');
});
