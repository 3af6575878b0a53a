/** Invalid command lines: one paragraph on standard error, and exit code 255. */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { programFile } from '../../test/harness/program-files.ts';

function run(...args: string[]): { code: number | null; stderr: string } {
  const { status, stderr } = spawnSync(process.execPath, [programFile('pilot-agent'), ...args], {
    encoding: 'utf8',
    cwd: '/',
  });
  return { code: status, stderr };
}

test.each([
  ['an unknown command', ['serve'], /unknown command 'serve'\. See 'pilot-agent --help'\n/],
  [
    'a flag without its value',
    ['proxy', '--restartPolicy'],
    /'--restartPolicy <policy>' argument missing\. See 'pilot-agent proxy --help'\n/,
  ],
  [
    'an unknown flag that resembles another one',
    ['wait', '--timeoutSecond', '4'],
    /^pilot-agent wait: unknown flag --timeoutSecond, did you mean --timeoutSeconds\? See 'pilot-agent wait --help'\n$/,
  ],
  [
    'an invalid value',
    ['wait', '--timeoutSeconds', 'x'],
    /must be an integer >= 0, got "x" \[FLAG_INVALID\]\n {2}→ See 'pilot-agent wait --help'\n$/,
  ],
  ['a missing argument', ['request', 'GET'], /missing required argument 'path'\. See 'pilot-agent request --help'\n/],
  [
    '§1.1 an invalid role after an unknown flag before the command',
    ['--bogus', 'proxy', 'waypoint'],
    /proxy type: .*"waypoint" \[FLAG_INVALID\]\n/,
  ],
  [
    '§1.1 an invalid role after an unknown flag with a value',
    ['--bogus', 'of it', 'proxy', 'waypoint', '--other=1'],
    /proxy type: .*"waypoint" \[FLAG_INVALID\]\n/,
  ],
  [
    '§1.1 an invalid role after a known flag before the command',
    ['--log_target', '/nowhere/log', 'proxy', 'waypoint', '--watchDelay', 'soon'],
    /proxy type: .*"waypoint" \[FLAG_INVALID\]\n/,
  ],
  [
    'an unknown role',
    ['proxy', 'waypoint'],
    /proxy type: must be one of sidecar, router, got "waypoint" \[FLAG_INVALID\]\n/,
  ],
  [
    'several invalid values, all in one error',
    ['proxy', '--watchDelay', 'soon', '--statusPort', '15000', '--hotRestart', 'maybe'],
    /--watchDelay: .*"soon"; --hotRestart: .*"maybe"; --statusPort, --proxyAdminPort: .*15000.* \[FLAG_INVALID\]\n/,
  ],
  [
    'a missing file',
    ['proxy', '--customConfigFile', '/nowhere'],
    /--customConfigFile: .*"\/nowhere".* \[FLAG_INVALID\]\n/,
  ],
  ['a directory instead of a file', ['proxy', '--meshConfig', '/etc'], /\/etc: EISDIR.* \[FILE_UNREADABLE\]\n/],
  [
    '§1.1 --log_target in a missing directory',
    ['proxy', '--log_target', '/nowhere/log'],
    /--log_target: .*"\/nowhere\/log".* \[FLAG_INVALID\]\n/,
  ],
  [
    'a missing root certificate of the control plane',
    ['proxy'],
    /root certificate of the control plane .* does not exist.* \[CONFIG_INVALID\]\n.*XDS_ROOT_CA/,
  ],
])('pilot-agent rejects %s', (_, args, expected) => {
  const { code, stderr } = run(...args);
  expect(stderr).toMatch(expected);
  expect(stderr.split('\n').length).toBeLessThan(5);
  expect(code).toBe(255);
});

test('an unknown flag is ignored before every command except proxy (agent §1.1)', () => {
  const { code, stderr } = run('--bogus=1', 'wait', '--timeoutSeconds', '0');
  expect(stderr).toMatch(/ignoring flags that wait does not have: --bogus=1\n/);
  expect(stderr).toMatch(/ not ready within 0 s, last error: no request was sent \[REQUEST_FAILED\]\n/);
  expect(code).toBe(255);
});

test.each([
  ['proxy', '[role]'],
  ['request', '<method> <path> [body]'],
  ['wait', ''],
  ['istio-iptables', ''],
  ['istio-clean-iptables', ''],
  ['version', ''],
  ['completion', '<shell>'],
])('the help of %s shows its arguments (agent §1.1)', (command, argumentText) => {
  const { status, stdout } = spawnSync(process.execPath, [programFile('pilot-agent'), command, '--help'], {
    encoding: 'utf8',
    cwd: '/',
  });
  expect(stdout).toContain(`Usage: pilot-agent ${command} [options]${argumentText === '' ? '' : ` ${argumentText}`}\n`);
  expect(status).toBe(0);
});

test.each([
  ['wait', '--timeoutSeconds', '0'],
  ['request', 'GET', '/', '--debug-port', '1'],
  ['version', '-s'],
])('log flags are accepted by %s, which has no log (agent §1.1)', (...command) => {
  const { stderr } = run(...command, '--log_output_level=default:info', '--log_as_json=true', '--log_target', 'stderr');
  expect(stderr).not.toMatch(/unknown flag/);
});
