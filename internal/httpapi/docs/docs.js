'use strict';

// validatorUrl would send the contract to somebody else's server.
SwaggerUIBundle({
  url: '/openapi.yaml',
  dom_id: '#api',
  deepLinking: true,
  validatorUrl: null,
});
