import { fromPromise } from 'xstate';
import {
  type CertificateReading,
  serverCertificateMachine,
} from '../../../machines/discovery/ca/server-certificate.machine.ts';
import type { Logger } from '../../runtime/output/log.ts';
import { watchEffect } from '../config/files/watch-actor.ts';
import type { PortCertificate } from './server-certificate/port-certificate.ts';

export function serverCertificateWithEffects(certificate: PortCertificate, log: Logger) {
  return serverCertificateMachine.provide({
    actors: {
      watchCertificate: watchEffect<undefined>((_, handlers) => certificate.watch(handlers), 'files.changed', log),
      readCertificate: fromPromise<CertificateReading, undefined>(async () => certificate.read()),
    },
  });
}
