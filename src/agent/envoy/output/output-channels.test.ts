import { text } from 'node:stream/consumers';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { codedError } from '../../../../test/fixtures/error-details.ts';
import { temporaryScratch } from '../../../../test/fixtures/real-envoy.ts';
import { openOutputChannels } from './output-channels.ts';

test('lets a child open its outputs by path, and ends the streams with the child', async () => {
  const channels = openOutputChannels(temporaryScratch(), false);
  const child = execa('sh', ['-c', 'echo direct; echo again > /dev/stdout; echo error > /dev/stderr'], {
    stdin: 'ignore',
    stdout: channels.stdout.childEnd,
    stderr: channels.stderr.childEnd,
  });
  channels.release();
  const [stdout, stderr] = await Promise.all([text(channels.stdout.stream!), text(channels.stderr.stream!), child]);
  expect(stdout).toBe('direct\nagain\n');
  expect(stderr).toBe('error\n');
});

test('inherits standard output if it is a file', () => {
  const channels = openOutputChannels(temporaryScratch(), true);
  expect(channels.stdout).toEqual({ childEnd: 'inherit', stream: undefined });
  channels.stderr.stream?.destroy();
  channels.release();
});

test('reports an error if no folder allows creating pipes', () => {
  const scratch = [{ path: '/dev/null/below', flag: '--runDir' }];
  expect(() => openOutputChannels(scratch, false)).toThrow(
    codedError('FILE_UNWRITABLE', { path: '--runDir', got: '/dev/null/below' }),
  );
});
