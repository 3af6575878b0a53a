import { bootstrapPatchesMachine } from '../../../machines/agent/bootstrap/bootstrap-patches.machine.ts';
import type { Logger } from '../../runtime/output/log.ts';
import type { UpstreamEnvironment } from '../xds/upstream.ts';
import { type BootstrapPatches, requestPatches } from './bootstrap-patches.ts';
import { firstRun } from './first-validation.ts';
import type { PrepareEnvironment } from './prepare-epoch.ts';

type BootstrapParts = Pick<PrepareEnvironment, 'source' | 'admin'>;

export function unpatchedBootstrap({ source, admin }: BootstrapParts): () => object {
  return () => ('bootstrap' in source ? source.bootstrap(admin.port, firstRun) : {});
}

export function bootstrapPatchesWithEffects(
  bootstrapParts: BootstrapParts,
  {
    way: connection,
    patches,
    log,
  }: {
    way: Pick<UpstreamEnvironment, 'discoveryAddress' | 'credentials' | 'headers'>;
    patches: BootstrapPatches;
    log: Logger;
  },
) {
  const requestFromControlPlane = requestPatches({
    ...connection,
    patches,
    bootstrap: unpatchedBootstrap(bootstrapParts),
    log: log.scope('bootstrap'),
  });
  return bootstrapPatchesMachine.provide({ actors: { requestPatches: requestFromControlPlane } });
}
