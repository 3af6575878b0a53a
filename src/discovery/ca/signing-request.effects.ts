import { fromPromise } from 'xstate';
import {
  type RequestReading,
  type RequestStep,
  type SigningRequestOutput,
  signingRequestMachine,
} from '../../../machines/discovery/ca/signing-request.machine.ts';
import type { RequestObject } from './cluster-signer/request-object.ts';

/** @param resolve called with the result before the object is deleted */
export function signingRequestWithEffects(request: RequestObject, resolve: (result: SigningRequestOutput) => void) {
  return signingRequestMachine.provide({
    actors: {
      createRequest: fromPromise<RequestStep, undefined>(({ signal }) => request.create(signal)),
      approveRequest: fromPromise<RequestStep, undefined>(({ signal }) => request.approve(signal)),
      readRequest: fromPromise<RequestReading, undefined>(({ signal }) => request.read(signal)),
      removeRequest: fromPromise<void, undefined>(({ signal }) => request.remove(signal)),
    },
    actions: { reportResult: (_, result) => resolve(result) },
  });
}
