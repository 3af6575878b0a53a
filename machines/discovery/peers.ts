import { peersOf } from '../peers.ts';
import type { AdsOrder, ClientsPush, ClientsServed, ConfigsChanged, MeshChanged, PushRequest } from './protocol.ts';

/** The actors of the control plane that are spoken to by name. */
export const peer = peersOf<{
  push: PushRequest | ClientsServed;
  'push-queue': ClientsPush;
  'ads-server': AdsOrder;
  'config-controller': MeshChanged;
  'service-registry': ConfigsChanged;
  jwks: ConfigsChanged;
  'trust-bundles': MeshChanged;
}>();
