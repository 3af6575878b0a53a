/** Containers with read-only root filesystems, without a home directory, with other users, and with no or too little shared memory. */

import { describe, expect, test } from 'vitest';
import {
  type ContainedAgent,
  type ContainedAgentOptions,
  endOf,
  envoysIn,
  readyAgent,
  startAgent,
} from '../harness/contained-agent.ts';
import { eventually } from '../harness/eventually.ts';
import { linesOf, loggedLine } from '../harness/logged-line.ts';
import { sized } from '../harness/size-of-run.ts';

const environmentWithoutHome: NodeJS.ProcessEnv = { HOME: undefined, TMPDIR: undefined, XDG_CACHE_HOME: undefined };

async function endsInOrder(agent: ContainedAgent): Promise<void> {
  agent.container.signal('SIGTERM');
  expect(await endOf(agent)).toEqual({ code: 0, signal: null });
}

/** Returns the output of an agent that does not start: at most a paragraph, immediately, and without a stack. */
async function refusal(...args: Parameters<typeof startAgent>): Promise<string> {
  const agent = await startAgent(...args);
  expect(await endOf(agent)).toEqual({ code: 255, signal: null });
  const messages = agent.container.program.lines.filter((line) => /^(pilot-agent: | {2})/.test(line));
  expect(agent.container.program.output()).not.toMatch(/^ +at /m);
  return messages.join('\n');
}

describe('an agent with a read-only root and a read-only /tmp', () => {
  const readOnly = ['mount -t tmpfs -o mode=777 none "$FOLDER/rw"', 'mount -o remount,bind,ro /'];

  test.each<[string, ContainedAgentOptions]>([
    ['root', {}],
    ['another user without a home directory', { uid: 1337, env: environmentWithoutHome }],
  ])('needs only --runDir if it has its own bootstrap (%s)', async (_, options) => {
    const flags = ['--customConfigFile', '$FOLDER/admin-only.json', '--runDir', '$FOLDER/rw/run'];
    const agent = await readyAgent(flags, { ...options, bare: true, prepare: readOnly });
    agent.container.signal('SIGHUP');
    await agent.container.program.line(loggedLine('restart.ended.live', { epoch: 'epoch-1' }));
    await endsInOrder(agent);
  });

  test('generates a bootstrap with --runDir and --configPath that Envoy validates and uses', async () => {
    const flags = [
      '--runDir',
      '$FOLDER/rw/run',
      '--configPath',
      '$FOLDER/rw/proxy',
      '--discoveryAddress',
      '127.0.0.1:1',
    ];
    const bootstrap = ['--controlPlaneAuthPolicy', 'NONE'];
    const options = {
      uid: 1337,
      env: { ...environmentWithoutHome, ENVOY_STATUS_PORT: '0', ENVOY_PROMETHEUS_PORT: '0' },
    };
    const agent = await startAgent([...flags, ...bootstrap], { ...options, bare: true, prepare: readOnly });
    await agent.container.program.line(loggedLine('process.spawned', { epoch: 'epoch-0' }));
    expect(envoysIn(agent)).toHaveLength(1);
    await endsInOrder(agent);
  });

  test('reports the missing --runDir immediately if both flags are missing', async () => {
    const flags = ['--discoveryAddress', '127.0.0.1:1', '--controlPlaneAuthPolicy', 'NONE'];
    expect(await refusal(flags, { bare: true, prepare: readOnly })).toMatch(
      /(run directory|folder):? .*EROFS.*--runDir/s,
    );
  });

  test('reports a missing --configPath if only this flag is missing', async () => {
    const flags = [
      '--runDir',
      '$FOLDER/rw/run',
      '--discoveryAddress',
      '127.0.0.1:1',
      '--controlPlaneAuthPolicy',
      'NONE',
    ];
    expect(await refusal(flags, { bare: true, prepare: readOnly })).toMatch(/etc\/istio\/proxy.*EROFS.*--configPath/s);
  });
});

test('the agent immediately reports a bootstrap that its user cannot read', async () => {
  const options = {
    bare: true,
    uid: 1337,
    env: environmentWithoutHome,
    prepare: ['chmod 600 "$FOLDER/admin-only.json"'],
  };
  expect(await refusal(['--customConfigFile', '$FOLDER/admin-only.json'], options)).toMatch(
    /--customConfigFile: must be a readable file, got .*EACCES/,
  );
});

test('the agent uses a run directory that is owned by root and writable for its group, such as an emptyDir with an fsGroup', async () => {
  const flags = ['--customConfigFile', '$FOLDER/admin-only.json', '--runDir', '$FOLDER/rw'];
  const prepare = ['mount -t tmpfs -o mode=2775,gid=1337 none "$FOLDER/rw"'];
  await endsInOrder(await readyAgent(flags, { bare: true, uid: 1337, env: environmentWithoutHome, prepare }));
});

// Issue 33, item 13.
test('the agent starts although the default run directory belongs to another user, and logs this once', async () => {
  const defaultFolder = '/run/tmp/chartpilot-1337';
  const prepare = [
    'mount -t tmpfs -o mode=755 none /run',
    'mkdir -m 1777 /run/tmp',
    `mkdir -m 777 ${defaultFolder}`,
    `chown 65534 ${defaultFolder}`,
  ];
  const options = { bare: true, uid: 1337, env: { ...environmentWithoutHome, TMPDIR: '/run/tmp' }, prepare };
  const agent = await readyAgent(['--customConfigFile', '$FOLDER/admin-only.json'], options);
  const warnings = agent.container.program.lines.filter((line) => line.includes('is not usable'));
  expect(warnings).toEqual([
    expect.stringMatching(
      `${defaultFolder} is not usable .owner must be uid \\d+, got uid 65534., using ${defaultFolder}-`,
    ),
  ]);
  await endsInOrder(agent);
});

describe('the agent with unusable shared memory', () => {
  const problems: [string, string[], RegExp][] = [
    ['missing', ['mount -t tmpfs none /dev'], /\/dev\/shm.*ENOENT/],
    ['read-only', ['mount -t tmpfs -o ro none /dev/shm'], /\/dev\/shm.*EROFS/],
    ['full', ['mount -t tmpfs -o size=16k none /dev/shm', 'head -c 16384 /dev/zero >/dev/shm/x'], /\/dev\/shm.*ENOSPC/],
    ['tiny', ['mount -t tmpfs -o size=4k none /dev/shm'], /\/dev\/shm.*ENOSPC/],
    ['owned by another user', ['mount -t tmpfs -o mode=700 none /dev/shm'], /\/dev\/shm.*EACCES/],
  ];
  /** Envoy's outputs and Node's random numbers need these devices. */
  const devices = ['null', 'zero', 'urandom', 'random'].map((name, index) => {
    const minor = { null: 3, zero: 5, urandom: 9, random: 8 }[name];
    return `mknod -m 666 /dev/${name} c 1 ${minor ?? index}`;
  });
  const preparing = (prepare: readonly string[]): string[] =>
    prepare.flatMap((line) => (line.endsWith(' /dev') ? [line, ...devices] : [line]));
  const user = (problem: string): ContainedAgentOptions =>
    problem === 'owned by another user' ? { uid: 1337, env: environmentWithoutHome } : {};
  const flags = ['--runDir', '$FOLDER/rw/run'];
  const writable = 'chmod 777 "$FOLDER/rw"';

  test.each(problems)('reports that shared memory is %s before it starts Envoy', async (problem, prepare, expected) => {
    const messages = await refusal([...flags, '--customConfigFile', '$FOLDER/admin-only.json'], {
      ...user(problem),
      bare: true,
      prepare: [writable, ...preparing(prepare)],
    });
    expect(messages).toMatch(expected);
    expect(messages).toContain('--hotRestart off');
    expect(messages).toContain('emptyDir with medium Memory');
  });

  test.each(problems.slice(0, sized({ short: 1, full: problems.length })))(
    'starts Envoy with --hotRestart off if shared memory is %s',
    async (problem, prepare) => {
      const agent = await readyAgent(
        [...flags, '--customConfigFile', '$FOLDER/admin-only.json', '--hotRestart', 'off'],
        {
          ...user(problem),
          bare: true,
          prepare: [writable, ...preparing(prepare)],
        },
      );
      // Drains and restarts Envoy.
      agent.container.signal('SIGHUP');
      await eventually(
        'Envoy was started a second time',
        () => linesOf(agent.container.program.lines, 'restart.ended.live', { epoch: 'epoch-0' }).length === 2,
      );
      await endsInOrder(agent);
    },
  );
});
