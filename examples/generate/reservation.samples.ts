/** Values that the machine does not define: its input, event payloads, and results of its effect. */
export const input = { maxSeats: 4 };

export const events = {
  'seats.chosen': [{ seats: 2 }, { seats: 5 }],
};

export const outcomes = {
  pay: [{ output: { receipt: 'r-1' } }, { error: 'card refused' }],
};
