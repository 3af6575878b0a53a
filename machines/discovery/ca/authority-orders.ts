/** Orders of an operator that a state of the authority ignores, with the reason that the operator receives. */

/** A taint is accepted, and recorded with the stage. */
export function rejectsUnrecorded() {
  const description = 'The stage is not yet written to the journal: repeat the order. The log has errors of the disk.';
  return {
    'rotation.start': { description },
    'rotation.revert': { description },
    'rotation.proceed': { description },
  };
}

export function orderRejections() {
  const description = 'No authority is loaded yet: repeat the order when /ready reports success.';
  return {
    'rotation.start': { description },
    'rotation.revert': { description },
    'rotation.taint': { description },
    'rotation.proceed': { description },
  };
}
