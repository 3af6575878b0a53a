import type { AdsStreamReport } from '../../../../machines/discovery/xds/ads-protocol.ts';
import { messageOf } from '../../../runtime/errors.ts';
import { maxNodeBytes, maxNodeIdLength } from '../ads-limits.ts';
import { readNode } from '../requests/ads-request.ts';
import type { NodeIdentity } from '../resource-source.ts';
import { shortenText } from './client-text.ts';

export type Introduction =
  | { readonly identity: NodeIdentity }
  | { readonly refusal: string }
  | { readonly report: AdsStreamReport };

export function introductionOf(node: Uint8Array | undefined): Introduction {
  let identity: NodeIdentity | undefined;
  if (node !== undefined && node.length > maxNodeBytes) {
    return { refusal: `node must have at most ${maxNodeBytes} bytes, got ${node.length}` };
  }
  try {
    identity = node === undefined ? undefined : readNode(node);
  } catch (error) {
    return { report: { type: 'request.invalid', reason: messageOf(error) } };
  }
  if (identity === undefined || identity.id === '') return { report: { type: 'node.missing' } };
  if (identity.id.length > maxNodeIdLength || identity.cluster.length > maxNodeIdLength) {
    return {
      refusal: `node id and cluster must have at most ${maxNodeIdLength} characters, got id ${shortenText(identity.id, 80)}`,
    };
  }
  return { identity };
}
