/** The directory of an authority and a client of it for each test of a file; both are removed after the test. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { CertificateCaller } from './certificate-caller.ts';
import { ControlPlane, stopControlPlanes } from './control-plane.ts';

export interface GivenAuthority {
  /** Value of SELF_SIGNED_CA_DIR. */
  readonly directory: string;
  readonly caller: CertificateCaller;
}

export function givenAuthority(): GivenAuthority {
  let currentAuthority: GivenAuthority | undefined;
  beforeEach(() => {
    const directory = mkdtempSync(join(tmpdir(), 'authority-'));
    currentAuthority = { directory, caller: new CertificateCaller(directory) };
  });
  afterEach(async () => {
    currentAuthority!.caller.close();
    await stopControlPlanes();
    rmSync(currentAuthority!.directory, { recursive: true });
  });
  return {
    get directory() {
      return currentAuthority!.directory;
    },
    get caller() {
      return currentAuthority!.caller;
    },
  };
}

/** A control plane that serves the authority on a TLS port. */
export async function servingAuthority(
  { directory }: GivenAuthority,
  env: NodeJS.ProcessEnv = {},
): Promise<ControlPlane> {
  const flags = { secureGRPCAddr: '127.0.0.1:0' };
  const plane = ControlPlane.starting(flags, undefined, { SELF_SIGNED_CA_DIR: directory, ...env });
  await plane.ready();
  return plane;
}
