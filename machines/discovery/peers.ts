import { peersOf } from '../peers.ts';
import type { OperatorOrder } from './ca/authority-protocol.ts';
import type { CatalogAccept } from './consul/consul-protocol.ts';
import type {
  AdsOrder,
  ClientsPush,
  ClientsServed,
  ConfigsChanged,
  MeshChanged,
  ProxyReport,
  PushRequest,
} from './protocol.ts';

export const peer = peersOf<{
  push: PushRequest | ClientsServed;
  'push-queue': ClientsPush | ProxyReport;
  'ads-server': AdsOrder;
  'config-controller': MeshChanged;
  'service-registry': ConfigsChanged;
  jwks: ConfigsChanged;
  authority: OperatorOrder;
  'trust-bundles': MeshChanged;
  consul: CatalogAccept;
}>();
