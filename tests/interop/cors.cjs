// Lets pages of every origin call an Express application, where the second argument of the program is `cors`.
'use strict';

module.exports = (app) => {
  if (process.argv[3] !== 'cors') return;
  app.use((request, response, next) => {
    response.set('Access-Control-Allow-Origin', '*');
    response.set('Access-Control-Allow-Headers', request.get('Access-Control-Request-Headers') ?? '*');
    response.set('Access-Control-Allow-Methods', 'GET, POST, DELETE');
    if (request.method === 'OPTIONS') response.sendStatus(204);
    else next();
  });
};
