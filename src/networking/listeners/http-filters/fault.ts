import { HTTPFaultSchema } from '../../../gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts';
import { typedExtension } from '../../messages/any.ts';
import type { HttpFilterContributor } from './contributor.ts';

const filter = typedExtension('envoy.filters.http.fault', HTTPFaultSchema);

export const fault: HttpFilterContributor = () => [filter];
