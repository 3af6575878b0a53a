import { peersOf } from '../peers.ts';
import type { AdsOrder, ClientsPush, ClientsServed, ConfigsChanged, PushRequest } from './protocol.ts';

/** Who in the control plane is spoken to by name. */
export const peer = peersOf<{
  push: PushRequest | ClientsServed;
  'push-queue': ClientsPush;
  'ads-server': AdsOrder;
  'service-registry': ConfigsChanged;
  jwks: ConfigsChanged;
}>();
