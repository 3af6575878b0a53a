import type { Config } from '../../../model/config/config.ts';
import { configSetOf } from '../../../model/config/config-set.ts';
import type { Problem } from '../../../model/config/problem.ts';
import { CredentialIndex } from '../../../model/push-context/credential-index.ts';
import { backendTlsReports } from '../../../model/translation/gateway-api/backend-tls-status.ts';
import { problemFieldsOf } from './about-object.ts';

/** A ConfigMap that is missing in the files may exist in the cluster, so there are only warnings. */
export function backendTlsProblems(configs: readonly Config[]): Problem[] {
  const { BackendTLSPolicy: policies, ConfigMap } = configSetOf(configs);
  const credentials = new CredentialIndex({ Secret: [], ConfigMap });
  return [...backendTlsReports(policies, credentials)].flatMap((report): Problem[] => {
    if (report === undefined) return [];
    const { policy, message } = report;
    return [
      { severity: 'warning', code: 'BACKEND_TLS_NOT_APPLIED', ...problemFieldsOf(policy), field: 'spec', message },
    ];
  });
}
