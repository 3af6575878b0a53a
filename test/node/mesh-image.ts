/** The agent and control plane images for tests on a node: those of `npm run image`, without compression. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { packageRoot, packageVersion } from '../../src/runtime/package-root.ts';

const prefix = 'localhost/chartpilot';

export const imageHub = prefix;
export const imageTag = packageVersion();
/** Contains Node, which also runs the applications of the tests. */
export const agentImage = `${prefix}/agent:${imageTag}`;
export const discoveryImage = `${prefix}/discovery:${imageTag}`;

/** Layers of Debian, Node and Envoy; a first build downloads them (20 s). */
export function layerCacheFolder(env: NodeJS.ProcessEnv = process.env): string {
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'chartpilot', 'image');
}

/**
 * Runs the same command as users; it builds `dist/` first if sources are newer.
 * @param output new folder
 * @returns the folder of the OCI layout
 */
export async function buildMeshImages(output: string, flags: readonly string[] = ['--compression', 'none']) {
  const command = [join(packageRoot(), 'deploy/image/build-image.ts'), '--output', output, '--name', prefix];
  const args = [...command, '--cache', layerCacheFolder(), ...flags];
  await execa(process.execPath, args, { cwd: packageRoot() });
  return join(output, 'oci');
}
