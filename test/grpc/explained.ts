/** Output of `pilot-discovery explain` for a call of a proxyless gRPC program. */
import { join } from 'node:path';
import { explainCommand } from '../../src/cli/commands/explain.ts';
import type { CallText } from '../../src/discovery/explain/grpc-call.ts';

/** @param root folder of a `ControlPlane`, whose files are read */
export async function explainedCall(root: string, node: string, ...args: readonly string[]): Promise<CallText> {
  let text = '';
  const command = explainCommand((printedText) => {
    text += printedText;
  });
  const files = ['--registries=', '--configDir', join(root, 'config'), '--meshConfig', join(root, 'mesh')];
  const program = ['--node', node, '--metadata', 'GENERATOR=grpc', '--metadata', 'NAMESPACE=shop', '--format', 'json'];
  await command.parseAsync([...files, ...program, ...args], { from: 'user' });
  return JSON.parse(text) as CallText;
}
