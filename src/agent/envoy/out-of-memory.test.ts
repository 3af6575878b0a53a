import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../../test/fixtures/real-envoy.ts';
import { outOfMemoryCounter } from './out-of-memory.ts';

/** A root directory with these files. */
function host(files: Readonly<Record<string, string>>): {
  root: string;
  write: (path: string, content: string) => void;
} {
  const folder = temporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  const write = (path: string, content: string): void => {
    mkdirSync(dirname(join(folder.path, path)), { recursive: true });
    writeFileSync(join(folder.path, path), content);
  };
  for (const [path, content] of Object.entries(files)) write(path, content);
  return { root: folder.path, write };
}

const v1Mounts = [
  '31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755',
  '33 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime shared:7 - cgroup cgroup rw,cpuset',
  '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:2 - cgroup cgroup rw,memory',
].join('\n');
const v1Events = (kills: number): string => `oom_kill_disable 0\nunder_oom 0\noom_kill ${kills}\n`;
const v2Mounts = '30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate,memory_recursiveprot\n';
const v2Events = (kills: number): string => `low 0\nhigh 0\nmax 7\noom 1\noom_kill ${kills}\noom_group_kill 0\n`;

test("reads memory.events of the agent's group each time with control groups version 2", () => {
  const events = 'sys/fs/cgroup/kubepods/pod1/memory.events';
  const { root, write } = host({
    'proc/self/cgroup': '0::/kubepods/pod1\n',
    'proc/self/mountinfo': v2Mounts,
    [events]: v2Events(0),
  });
  const kills = outOfMemoryCounter(root);
  expect(kills()).toBe(0);
  write(events, v2Events(2));
  expect(kills()).toBe(2);
});

test("reads memory.oom_control of the agent's memory group with control groups version 1", () => {
  const { root } = host({
    'proc/self/cgroup': '9:name=systemd:/other\n4:memory,hugetlb:/docker/abc\n0::/\n',
    'proc/self/mountinfo': v1Mounts,
    'sys/fs/cgroup/memory/docker/abc/memory.oom_control': v1Events(3),
  });
  expect(outOfMemoryCounter(root)()).toBe(3);
});

test('reads control groups version 2 if both versions are mounted and version 2 has the memory controller', () => {
  const { root } = host({
    'proc/self/cgroup': '1:name=systemd:/x\n0::/x\n',
    'proc/self/mountinfo': `${v1Mounts}\n38 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n`,
    'sys/fs/cgroup/unified/x/memory.events': v2Events(1),
  });
  expect(outOfMemoryCounter(root)()).toBe(1);
});

test('finds the group in a container that sees only its own subtree', () => {
  const { root } = host({
    'proc/self/cgroup': '4:memory:/docker/abc/inner\n',
    'proc/self/mountinfo': '35 31 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory',
    'sys/fs/cgroup/memory/inner/memory.oom_control': v1Events(5),
  });
  expect(outOfMemoryCounter(root)()).toBe(5);
});

test('reads the mounted subtree if the group is outside of it', () => {
  const { root } = host({
    'proc/self/cgroup': '0::/../other\n',
    'proc/self/mountinfo': '30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw',
    'sys/fs/cgroup/memory.events': v2Events(6),
  });
  expect(outOfMemoryCounter(root)()).toBe(6);
});

test.each([
  ['no control groups at all', {}],
  ['a root group, which has no such file', { 'proc/self/cgroup': '0::/\n', 'proc/self/mountinfo': v2Mounts }],
  [
    'a kernel that counts no kills',
    {
      'proc/self/cgroup': '0::/a\n',
      'proc/self/mountinfo': v2Mounts,
      'sys/fs/cgroup/a/memory.events': 'low 0\noom 1\n',
    },
  ],
])('returns no count with %s', (_, files) => {
  expect(outOfMemoryCounter(host(files as Record<string, string>).root)()).toBeUndefined();
});
